package wording

import (
	"strings"
	"sync"
)

// Head is a writer that keeps the first Most bytes and drops the rest. It is safe for concurrent use.
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

// String returns the bytes that were kept.
func (h *Head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}
