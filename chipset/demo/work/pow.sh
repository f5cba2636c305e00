# The first attempt is wrong, and the worker does not run the tests: the
# refinery does. The second attempt has the reason among its rework notes.
echo '[ "$(./calc pow 2 5)" = 32 ] || { echo "2 to the 5 is not 32 but $(./calc pow 2 5)"; exit 1; }' > tests/pow.sh
echo "$(cat OPERATIONS) pow" > OPERATIONS
if chipset work show "$CHIPSET_BEAD" --json | grep -q '"rework_notes"'; then
	cat > ops/pow.sh <<'OP'
result=1 n=$2
while [ "$n" -gt 0 ]; do result=$((result * $1)) n=$((n - 1)); done
echo $result
OP
else
	echo 'echo $(($1 * $2))' > ops/pow.sh
fi
git add -A
git commit -q -m "Add powers"
