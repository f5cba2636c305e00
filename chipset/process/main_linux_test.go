package process

// sessionProcesses returns the living processes with a session's marker.
func sessionProcesses(session string) []int {
	table, err := processTable()
	if err != nil {
		panic(err)
	}
	var found []int
	for _, p := range table {
		if p.dead {
			continue
		}
		if env, ok := environ(p.pid); ok && env[EnvSession] == session {
			found = append(found, p.pid)
		}
	}
	return found
}
