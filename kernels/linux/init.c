/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The first process, and the only program: switches all CPUs on, says which mitigations are on, loads
 * the module with its own arguments as the module's, unloads it, and switches the machine off.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <dirent.h>
#include <signal.h>
#include <unistd.h>

/* Under `-icount`, QEMU 7.2 lets a CPU that neither halts nor pauses starve the others, and the kernel's
 * wait for a CPU to come up is such a loop. So CPUs come up here, beside a process that pauses. */
static void switch_cpus_on(void)
{
	pid_t pausing = fork();
	int cpu, file;

	while (!pausing)
		__builtin_ia32_pause();
	for (cpu = 1; cpu < 64; cpu++) {
		char path[64];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
		file = open(path, O_WRONLY);
		if (file < 0)
			break;
		if (write(file, "1", 1) != 1)
			printf("init: CPU %d cannot be switched on: %s\n", cpu, strerror(errno));
		close(file);
	}
	kill(pausing, SIGKILL);
	waitpid(pausing, NULL, 0);
}

static void show_mitigations(void)
{
	const char *folder = "/sys/devices/system/cpu/vulnerabilities";
	DIR *all = opendir(folder);
	struct dirent *one;

	while (all && (one = readdir(all))) {
		char path[512], text[256] = "";
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s", folder, one->d_name);
		file = one->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (file && fgets(text, sizeof(text), file) && strncmp(text, "Not affected", 12))
			printf("mitigation: %s: %s", one->d_name, text);
		if (file)
			fclose(file);
	}
}

int main(int argc, char **argv)
{
	char parameters[512] = "";
	int module, i;

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	for (i = 1; i < argc; i++) {
		if (!strchr(argv[i], '=')) /* what the kernel did not know itself */
			continue;
		strncat(parameters, argv[i], sizeof(parameters) - strlen(parameters) - 2);
		strcat(parameters, " ");
	}
	switch_cpus_on();
	show_mitigations();
	fflush(stdout);
	module = open("/brickyard.ko", O_RDONLY);
	if (syscall(SYS_finit_module, module, parameters, 0))
		printf("init: the module is not loaded: %s\n", strerror(errno));
	else if (syscall(SYS_delete_module, "brickyard", O_NONBLOCK))
		printf("init: the module is not unloaded: %s\n", strerror(errno));
	else
		printf("init: loaded and unloaded\n");
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
