package process

// Program is a process and when it was started, which tells it from a later one of the same number.
type Program struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// Runs reports whether the program still runs. The zero Program does not.
func (p Program) Runs() bool { return sameProcess(p.PID, p.Start) }
