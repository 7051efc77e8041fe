// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Punishes the kernel's cache of directory entries: one process for each folder, all at once, looks up names that are there and names that are not, in its own folder and in
// those of the others, and renames its files to and fro. The folders should be file systems in memory, so that nothing waits for a disk.
//
//     dpunish ROUNDS FILES FOLDER...
//
// Each round makes FILES empty files in a folder, looks up and renames all of them, and removes them. It ends with 0 if every call did what it should.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// Longer than what an entry holds in itself, so that a name takes memory of its own.
#define NAME "a-name-that-is-too-long-to-be-kept-in-the-entry-itself"

static char **folders;
static int folder_count;

static void fail(const char *what, const char *path) {
    fprintf(stderr, "dpunish: cannot %s ", what);
    perror(path);
    _exit(1);
}

static void path_of(char path[4096], const char *folder, const char *below, int file) {
    snprintf(path, 4096, "%s/%s/" NAME "-%d", folder, below, file);
}

static void make(const char *folder, int file) {
    char path[4096];
    path_of(path, folder, "here", file);
    int made = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (made < 0 || close(made) != 0) {
        fail("make", path);
    }
}

// In the process's own folder a name must be there or not; in another's it may be either.
static void look_up(int mine, int file) {
    char path[4096];
    struct stat found;
    for (int folder = 0; folder < folder_count; folder++) {
        path_of(path, folders[folder], "here", file);
        if (stat(path, &found) != 0 && (folder == mine || errno != ENOENT)) {
            fail("find", path);
        }
        path_of(path, folders[folder], "nowhere", file);
        if (stat(path, &found) == 0 || errno != ENOENT) {
            fail("miss", path);
        }
    }
}

static void move(const char *folder, const char *from, const char *to, int file) {
    char old[4096], new[4096];
    path_of(old, folder, from, file);
    path_of(new, folder, to, file);
    if (rename(old, new) != 0) {
        fail("rename", old);
    }
}

static void punish(int mine, int rounds, int files) {
    const char *folder = folders[mine];
    for (int round = 0; round < rounds; round++) {
        for (int file = 0; file < files; file++) {
            make(folder, file);
        }
        for (int file = 0; file < files; file++) {
            look_up(mine, file);
            move(folder, "here", "there", file);
        }
        for (int file = files; file-- > 0;) {
            move(folder, "there", "here", file);
            look_up(mine, file);
        }
        for (int file = 0; file < files; file++) {
            char path[4096];
            path_of(path, folder, "here", file);
            if (unlink(path) != 0) {
                fail("remove", path);
            }
        }
    }
}

static void make_folder(const char *folder, const char *below) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, below);
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        fail("make", path);
    }
}

int main(int count, char **words) {
    if (count < 4 || atoi(words[1]) < 1 || atoi(words[2]) < 1) {
        fputs("usage: dpunish ROUNDS FILES FOLDER...\n", stderr);
        return 2;
    }
    folders = words + 3;
    folder_count = count - 3;
    for (int folder = 0; folder < folder_count; folder++) {
        make_folder(folders[folder], "here");
        make_folder(folders[folder], "there");
        make_folder(folders[folder], "nowhere");
    }
    for (int mine = 0; mine < folder_count; mine++) {
        pid_t child = fork();
        if (child < 0) {
            fail("fork for", folders[mine]);
        }
        if (child == 0) {
            punish(mine, atoi(words[1]), atoi(words[2]));
            _exit(0);
        }
    }
    int bad = 0, status;
    while (wait(&status) > 0) {
        bad |= status;
    }
    return bad != 0;
}
