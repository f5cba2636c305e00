# Changes the one line that the bead before changes too: one of them will conflict.
echo 'echo $(($1 * $2))' > ops/mul.sh
echo '[ "$(./calc mul 6 7)" = 42 ] || { echo "6 * 7 is not 42"; exit 1; }' > tests/mul.sh
echo "$(cat OPERATIONS) mul" > OPERATIONS
sleep 0.5
sh test.sh
git add -A
git commit -q -m "Add multiplication"
