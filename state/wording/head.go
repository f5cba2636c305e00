package wording

import (
	"strings"
	"sync"
)

// Head keeps the first Most bytes that are written to it, and drops the rest. Its methods may be called by several
// goroutines at once.
type Head struct {
	Most int

	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer. It never fails.
func (h *Head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(p[:min(max(h.Most-h.text.Len(), 0), len(p))])
	return len(p), nil
}

// String returns what was kept.
func (h *Head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}
