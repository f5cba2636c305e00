# Changes the one line that the next bead changes too: one of them will conflict.
echo 'echo $(($1 - $2))' > ops/sub.sh
echo '[ "$(./calc sub 7 3)" = 4 ] || { echo "7 - 3 is not 4"; exit 1; }' > tests/sub.sh
echo "$(cat OPERATIONS) sub" > OPERATIONS
sleep 0.5
sh test.sh
git add -A
git commit -q -m "Add subtraction"
