# Leaves its change uncommitted: the polecat commits what a worker leaves.
echo "1.1.0 with: $(cat OPERATIONS)" > VERSION
chipset done --summary "version 1.1.0 names all operations"
