package definition

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The pages name the thresholds that a definition without any has.
func TestPagesNameTheThresholds(t *testing.T) {
	d, problems := Parse("minimal", []byte(minimal))
	if d == nil {
		t.Fatal(problems)
	}
	g := d.GUPP.Thresholds
	for page, sentences := range map[string][]string{
		"configuration.md": {
			fmt.Sprintf("| `thresholds.stall_detection` | `%.0f` (%.0f min) |", g.StallDetection.Seconds(), g.StallDetection.Minutes()),
			fmt.Sprintf("| `thresholds.nudge_interval` | 2/5 of `stall_detection`: %.0f s |", g.NudgeInterval.Seconds()),
			fmt.Sprintf("| `thresholds.restart_threshold` | 2 × `stall_detection`: %.0f s |", g.RestartThreshold.Seconds()),
			fmt.Sprintf("| `thresholds.slow_start` | 1/5 of `stall_detection`: %.0f s |", g.SlowStart.Seconds()),
		},
		"roles.md": {
			fmt.Sprintf("`stall_detection` (%.0f s)", g.StallDetection.Seconds()),
			fmt.Sprintf("`slow_start` (%.0f s)", g.SlowStart.Seconds()),
		},
	} {
		text := readPage(t, page)
		for _, s := range sentences {
			if !strings.Contains(text, s) {
				t.Errorf("docs/%s does not say %q", page, s)
			}
		}
	}
}

// Every key of the schema has a row in the table of its section, with its default and its range.
func TestPageHasEveryKey(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal([]byte(Schema()), &root); err != nil {
		t.Fatal(err)
	}
	page := readPage(t, "configuration.md")
	sections := map[string]string{}
	for _, s := range strings.Split(page, "\n## ") {
		title, text, _ := strings.Cut(s, "\n")
		sections[title] = text
	}
	checked := 0
	for section, property := range root["properties"].(map[string]any) {
		switch section {
		case "header", "skills", "communication", "evaluation", "runtime":
			continue // they describe: a row of the page has all keys of a section
		case "allow":
			section = "sandbox"
		}
		text := sections[section]
		if section == "worker" {
			text = sections["Workers"]
		}
		eachKey(root, property.(map[string]any), func(key string, schema map[string]any) {
			if slices.Contains([]string{"topology", "ask", "edit", "full"}, key) {
				return // in the text beside the table, and one row for the three permissions
			}
			checked++
			row := regexp.MustCompile("(?m)^\\|[^|]*[`.]" + key + "`[^|]*\\|.*$").FindString(text)
			if row == "" {
				t.Errorf("docs/configuration.md: the section %s has no row for %s", section, key)
			}
			for _, figure := range figures(schema) {
				if !strings.Contains(row, figure) {
					t.Errorf("docs/configuration.md: %s: the row of %s does not say %s: %s", section, key, figure, row)
				}
			}
		})
	}
	if checked < 60 {
		t.Errorf("only %d keys were checked", checked)
	}
}

// eachKey calls visit with every key below a schema that has no keys of its own.
func eachKey(root, schema map[string]any, visit func(key string, schema map[string]any)) {
	if ref, ok := schema["$ref"].(string); ok {
		schema = root["definitions"].(map[string]any)[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
	}
	for _, below := range []string{"items", "patternProperties"} {
		if next, ok := schema[below].(map[string]any); ok {
			if values, ok := next[""].(map[string]any); ok {
				next = values
			}
			eachKey(root, next, visit)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for key, value := range properties {
		leaf := true
		eachKey(root, value.(map[string]any), func(key string, schema map[string]any) {
			leaf = false
			visit(key, schema)
		})
		if leaf {
			visit(key, value.(map[string]any))
		}
	}
}

// figures are the texts of a key's default and range in the page.
func figures(schema map[string]any) []string {
	var all []string
	for _, name := range []string{"default", "minimum", "maximum", "x-minimum", "x-maximum"} {
		var text string
		switch v := schema[name].(type) {
		case string:
			text = v
		case float64:
			text = strconv.FormatFloat(v, 'f', -1, 64)
		case bool:
			text = strconv.FormatBool(v)
		}
		switch text {
		case "1000000000000":
			text = "10^12"
		case "87600h":
			text = "10 years"
		case "8760h":
			text = "365 days"
		case "0s":
			text = "0"
		}
		all = append(all, text)
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
