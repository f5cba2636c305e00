package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/state/wording"
)

// remoteEnv checks that name is a configured remote: never a URL or a path, with which a
// foreign definition could point anywhere. It returns the environment for reaching it.
func (r *Repo) remoteEnv(ctx context.Context, name string) ([]string, error) {
	if _, err := ParseRef("refs/remotes/" + name); err != nil || strings.HasPrefix(name, "-") {
		return nil, fmt.Errorf("%q: %w", wording.Clip(name, 80), ErrNoRemote)
	}
	_, found, err := r.config(ctx, "remote."+name+".url")
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("%q: %w", name, ErrNoRemote)
	}
	return r.sshEnv(ctx)
}

// sshEnv keeps ssh from asking for a password, unless the person has configured how it is run.
func (r *Repo) sshEnv(ctx context.Context) ([]string, error) {
	if hasVariable(r.env, "GIT_SSH_COMMAND") || hasVariable(r.env, "GIT_SSH") {
		return nil, nil
	}
	// GIT_SSH_COMMAND would override core.sshCommand.
	if _, found, err := r.config(ctx, "core.sshCommand"); err != nil || found {
		return nil, err
	}
	return []string{"GIT_SSH_COMMAND=ssh -oBatchMode=yes"}, nil
}

// Remotes returns the names of all configured remotes.
func (r *Repo) Remotes(ctx context.Context) ([]string, error) {
	out, err := r.run(ctx, r.plain(), Command{Args: []string{"remote"}, Read: true})
	return strings.Fields(string(out)), err
}

// RemoteHash asks the remote what the branch holds there. It returns ErrNoRemote for a remote
// that is not configured.
func (r *Repo) RemoteHash(ctx context.Context, remote string, b Branch) (h Hash, found bool, err error) {
	if err := b.check(); err != nil {
		return "", false, err
	}
	env, err := r.remoteEnv(ctx, remote)
	if err != nil {
		return "", false, err
	}
	out, err := r.run(ctx, r.outward(), Command{Args: []string{"ls-remote", "--quiet", "--refs", "--", remote, string(b.Ref())}, Env: env, Read: true, Network: true})
	if err != nil {
		return "", false, err
	}
	// The pattern also matches refs/x/refs/heads/b.
	for l := range strings.Lines(string(out)) {
		if object, name, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "\t"); name == string(b.Ref()) {
			h, err := ParseHash(object)
			return h, err == nil, err
		}
	}
	return "", false, nil
}

// Fetch updates refs/remotes/{remote}/{branch} and returns what it holds. It returns
// ErrNoRemote, or ErrNoRemoteBranch. No local branch, tag or FETCH_HEAD changes.
func (r *Repo) Fetch(ctx context.Context, remote string, b Branch) (Hash, error) {
	return r.fetch(ctx, remote, b)
}

func (r *Repo) fetch(ctx context.Context, remote string, b Branch, options ...string) (Hash, error) {
	if err := b.check(); err != nil {
		return "", err
	}
	env, err := r.remoteEnv(ctx, remote)
	if err != nil {
		return "", fmt.Errorf("fetch: %w", err)
	}
	tracking, err := ParseRef("refs/remotes/" + remote + "/" + string(b))
	if err != nil {
		return "", fmt.Errorf("fetch: %w", err)
	}
	args := append([]string{"fetch", "--quiet", "--no-tags", "--no-prune", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance"}, options...)
	_, err = r.run(ctx, r.outward(), Command{Env: env, Network: true, Args: append(args, "--", remote, "+"+string(b.Ref())+":"+string(tracking))})
	if exited(err, 128) {
		// git has the same exit status for "no such branch" and for "no answer", so ask.
		if _, found, askErr := r.RemoteHash(ctx, remote, b); askErr == nil && !found {
			return "", fmt.Errorf("fetch %s from %s: %w", b, remote, ErrNoRemoteBranch)
		}
	}
	if err != nil {
		return "", err
	}
	h, found, err := r.ResolveRef(ctx, tracking)
	if err == nil && !found {
		err = fmt.Errorf("fetch %s from %s: %w", b, remote, ErrNoRemoteBranch)
	}
	return h, err
}

// Push fast-forwards the remote's branch to h, never by force. If it is not a fast-forward, or the server
// refuses it, the error is a *RejectedError, which is an ErrRejected. ErrNoRemote is returned for a remote
// that is not configured.
func (r *Repo) Push(ctx context.Context, remote string, h Hash, b Branch) error {
	if err := errors.Join(b.check(), checkCommits(h)); err != nil {
		return err
	}
	env, err := r.remoteEnv(ctx, remote)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	stdout, stderr, err := r.runBoth(ctx, r.outward(), Command{Env: env, Network: true, Args: push(remote, string(h), b)})
	if !exited(err, 1) {
		return err
	}
	for l := range strings.Lines(string(stdout)) {
		// The documented format: flag, tab, refspec, tab, summary.
		parts := strings.SplitN(strings.TrimSuffix(l, "\n"), "\t", 3)
		if len(parts) == 3 && parts[0] == "!" {
			return &RejectedError{ByHook: strings.HasPrefix(parts[2], "[remote"), Reason: parts[2], Output: stderr}
		}
	}
	return err
}

// push returns the arguments of a push to one branch that pushes nothing else, whatever the person has configured.
func push(remote, what string, b Branch, options ...string) []string {
	args := append([]string{"push", "--porcelain", "--no-force", "--no-follow-tags", "--recurse-submodules=no"}, options...)
	return append(args, "--", remote, what+":"+string(b.Ref()))
}

// CanPush asks a remote whether it would accept a push to branch b, with a dry run. If the remote's b is
// ahead, only the permission is checked. It returns ErrNoRemote for a remote that is not configured.
func (r *Repo) CanPush(ctx context.Context, remote string, b Branch) error {
	there, found, err := r.RemoteHash(ctx, remote, b)
	if err != nil {
		return err
	}
	what := string(b.Ref())
	if found { // there may be commits that are unknown here; git asks with their name alone
		what = string(there)
	}
	env, err := r.remoteEnv(ctx, remote)
	if err != nil {
		return err
	}
	_, err = r.run(ctx, r.outward(), Command{Env: env, Network: true, Read: true, Args: push(remote, what, b, "--dry-run")})
	return err
}
