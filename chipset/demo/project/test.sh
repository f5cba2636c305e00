#!/bin/sh
# Builds (every file must be valid shell) and runs the tests of every operation.
cd "$(dirname "$0")" || exit 1
for file in calc ops/*.sh tests/*.sh; do
	sh -n "$file" || { echo "FAIL: $file does not parse"; exit 1; }
done
for op in $(cat OPERATIONS); do
	[ -f "tests/$op.sh" ] || { echo "FAIL: $op has no test"; exit 1; }
	sh "tests/$op.sh" || { echo "FAIL: $op"; exit 1; }
	echo "ok: $op"
done
