package powercut

import "slices"

// content is what stands in a file, now and after a cut.
type content struct {
	now    []byte // what programs see
	shared bool   // now is also somebody else's: it is copied before it changes
	// durable and the writes since: what an fsync would make durable is durable
	// with all of them. It is not now once a failed fsync has lost some.
	durable []byte
	pending []write
	lost    bool
}

// write is one change of a file: data at off, and the size the file has then.
type write struct {
	off  int
	data []byte
	size int
}

func durable(data []byte) content {
	return content{now: data, shared: true, durable: data}
}

// write puts data at off, with zeros before it where there was nothing.
func (c *content) write(off int, data []byte) {
	w := write{off: off, data: slices.Clone(data), size: max(len(c.now), off+len(data))}
	c.own(w.size)
	copy(c.now[off:], data)
	c.pending = append(c.pending, w)
}

func (c *content) truncate(size int) {
	if size == len(c.now) {
		return
	}
	c.own(size)
	c.pending = append(c.pending, write{off: size, size: size})
}

// own makes now a slice of its own with the given size.
func (c *content) own(size int) {
	if !c.shared && size <= cap(c.now) {
		old := len(c.now)
		c.now = c.now[:size]
		if size > old {
			clear(c.now[old:])
		}
		return
	}
	// Room for what is usually appended next.
	grown := make([]byte, size, size+size/2)
	copy(grown, c.now)
	c.now, c.shared = grown, false
}

func (c *content) sync() {
	if c.lost {
		for _, w := range c.pending {
			c.durable = w.onto(c.durable)
		}
	} else {
		c.durable, c.shared = c.now, true
	}
	c.pending = nil
}

// lose forgets what waited to be written. The size is recorded apart from the
// content and arrives.
func (c *content) lose() {
	if len(c.pending) == 0 {
		return
	}
	c.durable = resize(c.durable, len(c.now))
	c.pending, c.lost = nil, true
}

// onto returns data with the write applied, on a slice of its own.
func (w write) onto(data []byte) []byte {
	data = resize(data, w.size)
	copy(data[w.off:], w.data)
	return data
}

func resize(data []byte, size int) []byte {
	sized := make([]byte, size)
	copy(sized, data)
	return sized
}
