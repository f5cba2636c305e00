# Nothing to land: this bead only looks, and may come out empty.
sh test.sh
./calc pow 2 10
