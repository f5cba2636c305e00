{
	echo "# Release notes"
	echo
	echo "Version $(cat VERSION). There is a manual now: MANUAL.md."
} > NOTES.md
git add -A
git commit -q -m "Write the release notes"
chipset mail send human --subject "notes are written" --body "see NOTES.md"
