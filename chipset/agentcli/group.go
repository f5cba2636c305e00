package agentcli

import (
	"os/exec"
	"syscall"
)

// inOwnGroup makes the end of cmd the end of its whole process group.
func inOwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
