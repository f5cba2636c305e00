package definition

import (
	"strings"
	"testing"
)

// FuzzParse: whatever the file holds, reading it ends, and either there is a
// definition that can be used or a problem that says where.
func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add(readTestdata(f, "classic.yaml"))
	f.Add(Template(TemplateOptions{RigName: "x"}))
	for _, seed := range []string{
		"", "---\n---\n", "a: &a [*a]", "? ? ?", "agents: {agents: [{name: mayor, role: mayor, count: 9}]}", "\t", "[[[[[", "{{{{", "a: !!binary x",
		"- - - -", "&a *a", "%YAML 9.9\n---\n", "worker: {presets: {x: {command: [1, true, ~]}}}", "<<: {}", "\ufeffagents:", "a: |2\n x", "#\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		def, problems := Parse("f", data)
		if (def == nil) != (problems.Err() != nil) {
			t.Fatalf("definition %v with problems %v", def, problems)
		}
		lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + strings.Count(string(data), "\u0085") +
			strings.Count(string(data), "\u2028") + strings.Count(string(data), "\u2029") + 2
		for _, problem := range problems {
			if problem.Line < 1 || problem.Line > lines || problem.Column < 1 || problem.Message == "" || strings.Contains(problem.String(), "\n") {
				t.Fatalf("problem %+v in a file of %d lines", problem, lines)
			}
		}
		if def == nil {
			return
		}
		seen := map[string]bool{}
		for _, agent := range def.Agents() {
			if seen[agent.ID] || !legalID(agent.ID) {
				t.Fatalf("agent %q", agent.ID)
			}
			seen[agent.ID] = true
		}
	})
}
