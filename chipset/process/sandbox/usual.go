package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Secrets returns the files and folders that no worker and no test needs to read: keys, passwords, tokens, histories and
// browser profiles. home is the user's, lookup returns a variable of the environment; patterns are those of filepath.Glob.
func Secrets(home string, lookup func(string) string) []string {
	all := []string{"/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/ssh/ssh_host_*_key", "/run/secrets", "/var/run/secrets"}
	for _, name := range []string{
		".ssh", ".gnupg", ".pki", ".password-store", ".local/share/keyrings", ".local/share/kwalletd", "Library/Keychains",
		".aws", ".azure", ".boto", ".s3cfg", ".oci", ".fly", ".config/chipset", ".config/rclone", ".config/sops", ".config/doctl", ".config/heroku", ".config/gcloud", ".kube", ".docker", ".config/containers/auth.json", ".terraform.d", ".vault-token", ".config/op",
		".netrc", ".authinfo*", ".pgpass", ".my.cnf", ".git-credentials", ".config/git/credentials", ".config/gh", ".config/glab-cli", ".config/hub", ".config/github-copilot",
		".minikube", ".tsh", ".cloudflared", ".config/hcloud", ".config/stripe", ".config/age", ".databrickscfg", ".kaggle", ".cache/huggingface/token", ".composer/auth.json", ".config/composer/auth.json", ".mylogin.cnf",
		".pypirc", ".cargo/credentials*", ".gem/credentials",
		".*_history", ".zhistory", ".local/state/bash", ".local/share/fish",
		".mozilla", ".thunderbird", ".config/google-chrome*", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge*", ".config/vivaldi", ".config/opera", ".var/app/org.mozilla.firefox", ".var/app/com.google.Chrome", ".config/1Password", ".config/Bitwarden", ".config/Signal",
		"snap/firefox", "snap/chromium", "Library/Cookies", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
		"Library/Safari",
	} {
		all = append(all, filepath.Join(home, name))
		for variable, folder := range map[string]string{"XDG_CONFIG_HOME": ".config/", "XDG_DATA_HOME": ".local/share/"} {
			if rest, is := strings.CutPrefix(name, folder); is && filepath.IsAbs(lookup(variable)) {
				all = append(all, filepath.Join(lookup(variable), rest))
			}
		}
	}
	for _, variable := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "CLOUDSDK_CONFIG", "DOCKER_CONFIG", "GNUPGHOME", "KUBECONFIG", "PASSWORD_STORE_DIR"} {
		for _, path := range filepath.SplitList(lookup(variable)) {
			if filepath.IsAbs(path) {
				all = append(all, path)
			}
		}
	}
	return all
}

// Caches returns the folders in which tools keep downloads and build results. lookup returns a variable of the
// environment.
func Caches(home string, lookup func(string) string) []string {
	or := func(variable string, path ...string) string {
		if value := lookup(variable); filepath.IsAbs(value) {
			return value
		}
		return filepath.Join(path...)
	}
	cache := or("XDG_CACHE_HOME", home, ".cache")
	cargo, gopath := or("CARGO_HOME", home, ".cargo"), or("GOPATH", home, "go")
	all := []string{
		or("GOCACHE", cache, "go-build"), or("GOMODCACHE", gopath, "pkg", "mod"), filepath.Join(gopath, "pkg", "sumdb"),
		filepath.Join(cargo, "registry"), filepath.Join(cargo, "git"), filepath.Join(cargo, ".package-cache"),
		filepath.Join(cargo, ".package-cache-mutate"), filepath.Join(cargo, ".global-cache"),
		or("npm_config_cache", home, ".npm"), or("PIP_CACHE_DIR", cache, "pip"), or("UV_CACHE_DIR", cache, "uv"),
	}
	for _, name := range []string{"bazel", "ccache", "composer", "coursier", "Cypress", "deno", "golangci-lint", "gopls", "ms-playwright", "mypy", "node",
		"node-gyp", "pnpm", "puppeteer", "pypoetry", "rebar3", "ruff", "sccache", "staticcheck", "typescript", "yarn", "zig"} {
		all = append(all, filepath.Join(cache, name))
	}
	for _, name := range []string{".bun/install/cache", ".bundle/cache", ".ccache", ".conda/pkgs", ".gradle/caches", ".gradle/daemon", ".gradle/native",
		".gradle/notifications", ".gradle/wrapper", ".hex/packages", ".ivy2/cache", ".local/share/NuGet", ".local/share/pnpm/store", ".m2/repository",
		".nuget/packages", ".pub-cache", ".sbt/boot", ".yarn/berry",
		"Library/Caches/go-build", "Library/Caches/pip", "Library/Caches/Yarn", "Library/pnpm"} {
		all = append(all, filepath.Join(home, name))
	}
	return all
}

// MakeCaches makes the folders of Caches in which the tools of a PATH keep things and that are not there yet: in a
// sandbox a tool can't make them when it is used for the first time.
func MakeCaches(home string, lookup func(string) string) error {
	var err error
	made := Caches(home, lookup)
	for tool, names := range map[string][]string{"go": {"go-build", "mod", "sumdb"}, "npm": {".npm"}, "cargo": {"registry", "git"}, "pip": {"pip"}, "pip3": {"pip"},
		"uv": {"uv"}, "yarn": {"yarn"}, "pnpm": {"pnpm", "store"}} {
		if _, missing := exec.LookPath(tool); missing != nil {
			continue
		}
		for _, path := range made {
			if slices.Contains(names, filepath.Base(path)) {
				err = errors.Join(err, os.MkdirAll(path, 0o755)) //nolint:forbidigo // caches are no state
			}
		}
	}
	return err
}

// Environment keeps of environ what every program needs, what toolchains are set up with, and what more names: the names
// of variables, or beginnings of names with a * behind. A toolchain's variable whose name is that of a secret is left out
// unless more names it.
func Environment(environ, more []string) []string {
	var kept []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if named(more, name) || named(usualVariables(), name) && !secretName(name) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// named reports whether a name is one of patterns.
func named(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		beginning, open := strings.CutSuffix(pattern, "*")
		return pattern == name || open && strings.HasPrefix(name, beginning)
	})
}

func secretName(name string) bool {
	upper := strings.ReplaceAll(strings.ToUpper(name), "_AUTHOR", "") // git's author is no secret
	return slices.ContainsFunc([]string{"TOKEN", "SECRET", "PASSW", "CREDENTIAL", "_KEY", "APIKEY", "_AUTH"},
		func(part string) bool { return strings.Contains(upper, part) })
}

func usualVariables() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "HOSTNAME", "TZ", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR*", "CI",
		"LANG", "LANGUAGE", "LC_*", "XDG_CACHE_HOME", "XDG_CONFIG_*", "XDG_DATA_*", "XDG_STATE_HOME",
		"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
		"GIT_*",
		"AR", "AS", "CC", "CXX", "LD", "NM", "RANLIB", "CFLAGS", "CPPFLAGS", "CXXFLAGS", "LDFLAGS", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH",
		"C_INCLUDE_PATH", "MAKEFLAGS", "PKG_CONFIG*", "CMAKE_*", "CCACHE_*", "DYLD_*", "SDKROOT", "DEVELOPER_DIR", "MACOSX_DEPLOYMENT_TARGET",
		"GO111MODULE", "GOAMD64", "GOARCH", "GOARM*", "GOBIN", "GOCACHE", "GOCOVERDIR", "GODEBUG", "GOENV", "GOEXPERIMENT", "GOFLAGS", "GOGC", "GOINSECURE",
		"GOMAXPROCS", "GOMEMLIMIT", "GOMODCACHE", "GONOPROXY", "GONOSUMDB", "GOOS", "GOPATH", "GOPRIVATE", "GOPROXY", "GORACE", "GOROOT", "GOSUMDB",
		"GOTOOLCHAIN", "GOTRACEBACK", "GOVCS", "GOWORK", "CGO_*",
		"CARGO_*", "RUST*", "NODE_*", "npm_config_*", "NPM_CONFIG_*", "NVM_*", "FNM_*", "VOLTA_*", "COREPACK_*", "PNPM_*", "YARN_*", "BUN_*", "DENO_*",
		"PLAYWRIGHT_*", "PUPPETEER_*", "PYTHON*", "PYENV_*", "VIRTUAL_ENV", "CONDA_*", "PIP_*", "UV_*", "POETRY_*", "PIPENV_*", "TOX_*", "HATCH_*",
		"JAVA_*", "JDK_*", "MAVEN_*", "M2_HOME", "GRADLE_*", "KOTLIN_*", "SDKMAN_*", "SCALA_*", "SBT_*", "ANDROID_*",
		"RBENV_*", "RUBY*", "GEM_*", "BUNDLE_*", "PHP*", "COMPOSER_*", "DOTNET_*", "NUGET_*", "MIX_*", "HEX_*", "ERL_*", "ELIXIR_*", "GHCUP_*", "CABAL_*",
		"STACK_*", "OPAM*", "FLUTTER_*", "SWIFT*", "ZIG_*", "PERL*", "R_*", "JULIA_*", "NIX_*", "ASDF_*", "MISE_*", "HOMEBREW_*", "DIRENV_*",
	}
}
