# The first session hangs. The witness notices, asks, and tells the mayor, who
# replaces it; the second session does the work.
if ! chipset work show "$CHIPSET_BEAD" --json | grep -q '"restarts"'; then
	echo "waiting for an answer that nobody will give"
	sleep 3600
fi
printf '# calc(1)\n\n    calc OPERATION A B\n' > MANUAL.md
git add -A
git commit -q -m "Write the manual"
