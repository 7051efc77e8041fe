#!/usr/bin/env bash
# git under the allocator: 300 commits on two branches, merges, an aggressive repack, a check, a
# clone, blame. Authors and times are fixed, so the commit ids are the same on every run. Runs in an
# empty directory.
set -euo pipefail

export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null LC_ALL=C TZ=UTC
export GIT_AUTHOR_NAME=Mason GIT_AUTHOR_EMAIL=mason@example.org
export GIT_COMMITTER_NAME=Mason GIT_COMMITTER_EMAIL=mason@example.org

commit() { # commit NUMBER MESSAGE
    GIT_AUTHOR_DATE="$((1200000000 + $1)) +0000" GIT_COMMITTER_DATE="$((1200000000 + $1)) +0000" \
        git commit --quiet --all --message "$2"
}

lay() { # lay NUMBER: changes three files, one of them in the middle
    local line
    for line in 1 2 3 4 5; do echo "course $1 line $line $(($1 * 7919 * line % 10007))"; done >>"wall$(($1 % 12)).txt"
    sed -i "$(($1 % 9 + 1))s/\$/ $1/" "wall$(($1 * 5 % 12)).txt"
    head -c $(($1 * 4001 % 60000)) /dev/zero | tr '\0' "\\$((101 + $1 % 70))" >"heap$(($1 % 5)).bin"
}

git -c init.defaultBranch=main init --quiet yard
cd yard
for number in {0..11}; do seq $((number * 10)) $((number * 10 + 300)) >"wall$number.txt"; done
touch heap{0..4}.bin
git add .
commit 0 "foundation"
for number in {1..299}; do
    [ $((number % 100)) != 50 ] || git checkout --quiet -b "side$number"
    lay "$number"
    commit "$number" "course $number"
    if [ $((number % 100)) = 99 ]; then
        git checkout --quiet main
        GIT_AUTHOR_DATE="1300000000 +0000" GIT_COMMITTER_DATE="1300000000 +0000" \
            git merge --quiet --no-ff --message "join $number" "side$((number - 49))"
    fi
done

git gc --quiet --aggressive --prune=now
git fsck --full --strict --no-progress
git rev-parse HEAD 'HEAD^{tree}'
git rev-list --count --all
git log --patch --stat --find-renames | sha256sum
git blame --line-porcelain wall7.txt | sha256sum
git grep --count 'course 2.*line 3' | sha256sum
git archive HEAD | sha256sum
cd ..
git clone --quiet --no-local --branch main yard copy
git -C copy fsck --full --strict --no-progress
git -C copy log --format='%H %P %T' | sha256sum
cd copy && git ls-files -s | sha256sum && git status --short
