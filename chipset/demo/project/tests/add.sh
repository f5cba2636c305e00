[ "$(./calc add 2 3)" = 5 ] || { echo "2 + 3 is not 5 but $(./calc add 2 3)"; exit 1; }
