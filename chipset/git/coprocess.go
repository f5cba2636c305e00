package git

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// coprocessIdle is how long an idle coprocess is kept.
	coprocessIdle = 5 * time.Second
	// coprocessTimeout bounds one answer.
	coprocessTimeout = 30 * time.Second
)

// coprocess is a git process that answers many questions, so that a question does not start a process. The first question
// starts it. It ends after coprocessIdle without a question, on Close, and with this process, when its
// pipe closes. If it dies, the next question starts it again. It only reads, and holds no lock.
type coprocess struct {
	args []string

	mu     sync.Mutex // held while a question is asked and answered
	cmd    *exec.Cmd  // nil while none runs
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *tail
	idle   *time.Timer
}

// ask writes a question and calls answer to read git's output. It fails with an *Error when git dies on the
// question, when ctx ends, and after coprocessTimeout.
func (r *Repo) ask(ctx context.Context, c *coprocess, question string, answer func(*bufio.Reader) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ran := c.cmd != nil
	err := r.askOnce(ctx, c, question, answer)
	if err != nil && ran && ctx.Err() == nil { // it may have been killed since the last question
		err = r.askOnce(ctx, c, question, answer)
	}
	return err
}

func (r *Repo) askOnce(ctx context.Context, c *coprocess, question string, answer func(*bufio.Reader) error) error {
	err := ctx.Err()
	if err == nil && c.cmd == nil {
		err = r.start(c)
	}
	if err != nil {
		return &Error{Args: c.args, Dir: r.common, ExitCode: -1, Cause: err}
	}
	ctx, cancel := context.WithTimeout(ctx, coprocessTimeout)
	defer cancel()
	process := c.cmd.Process
	stop := context.AfterFunc(ctx, func() { _ = process.Kill() }) // answer then sees the end of the pipe
	defer stop()
	_, err = io.WriteString(c.in, question)
	if err == nil {
		err = answer(c.out)
	}
	if err == nil {
		c.idle.Reset(coprocessIdle)
		return nil
	}
	said := c.stop()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return &Error{Args: c.args, Dir: r.common, ExitCode: -1, Stderr: said, Cause: err}
}

func (r *Repo) start(c *coprocess) error {
	cmd := exec.Command(r.git, fullArgs(r.plain(), Command{Args: c.args})...)
	cmd.Dir = "/" // so that it blocks no unmount
	// diff-tree would read the index of the person's checkout, which may be torn: give it one that does not exist.
	cmd.Env = append(r.environment(Command{Read: true}), "GIT_INDEX_FILE="+filepath.Join(r.common, "chipset-no-index"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr := &tail{limit: maxStderr}
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.cmd, c.in, c.out, c.stderr = cmd, in, bufio.NewReader(out), stderr
	c.idle = time.AfterFunc(coprocessIdle, c.close)
	return nil
}

// stop ends the process and returns the end of its standard error. The caller holds the lock.
func (c *coprocess) stop() string {
	c.idle.Stop()
	_ = c.in.Close()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // its exit status means nothing
	c.cmd = nil
	return c.stderr.String()
}

func (c *coprocess) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd != nil {
		c.stop()
	}
}

// Close ends the repository's coprocesses. The repository may be used afterwards; that starts them
// again.
func (r *Repo) Close() {
	r.objects.close()
	r.trees.close()
}
