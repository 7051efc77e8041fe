#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# An Andrew-like benchmark without the compile: mab.sh SOURCE TARGET
#
# 1. creates TARGET with the directories of SOURCE, 2. copies every file, one command each, 3. reads
# the status of every file, 4. reads every byte of every file, twice. TARGET must not exist yet, and
# is not removed.
set -eu

[ $# = 2 ] && [ -d "$1" ] && [ ! -e "$2" ] || {
    echo "usage: mab.sh SOURCE TARGET, a folder that is there and one that is not" >&2
    exit 2
}
source=$1
target=$2

mkdir "$target"
(cd "$source" && find . -type d ! -name .) | while read -r folder; do
    mkdir "$target/$folder"
done
(cd "$source" && find . -type f) | while read -r file; do
    cp "$source/$file" "$target/$file"
done
find "$target" -type d | while read -r folder; do
    ls -l "$folder" >/dev/null
done
du -s "$target" >/dev/null
find "$target" -type f | while read -r file; do
    grep -c undefined "$file" >/dev/null || true
    wc "$file" >/dev/null
done
