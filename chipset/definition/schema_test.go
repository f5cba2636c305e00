package definition

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"gopkg.in/yaml.v3"
)

// TestSchemaIsTheStruct: every key of the schema is decoded into a field, and every
// field has a key.
func TestSchemaIsTheStruct(t *testing.T) {
	compareKeys(t, "", loadSchema(), loadSchema(), reflect.TypeFor[Definition]())
}

func compareKeys(t *testing.T, path string, root, s *schema, typ reflect.Type) {
	s = s.resolve(root.Definitions)
	if s.Items != nil && typ.Kind() == reflect.Slice {
		compareKeys(t, path+"[]", root, s.Items, typ.Elem())
		return
	}
	if typ == reflect.TypeFor[WorkerPresets]() {
		compareKeys(t, path+".*", root, s.Any[""], typ.Elem())
		return
	}
	if s.Properties == nil || typ.Kind() == reflect.Map {
		return
	}
	fields := map[string]reflect.Type{}
	for field := range typ.Fields() {
		if key := keyOf(field.Tag.Get("yaml"), strings.ToLower(field.Name)); field.IsExported() && key != "-" {
			fields[key] = field.Type
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(s.Properties)), slices.Sorted(maps.Keys(fields))); diff != "" {
		t.Errorf("keys of %s (-schema +struct):\n%s", path, diff)
	}
	for key, property := range s.Properties {
		if fields[key] != nil {
			compareKeys(t, path+"."+key, root, property, fields[key])
		}
	}
}

func keyOf(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// TestSchemaDefaults: a definition with every default of the schema written out is
// one that says nothing.
func TestSchemaDefaults(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal([]byte(Schema()), &root); err != nil {
		t.Fatal(err)
	}
	sections, _ := schemaDefaults(root).(map[string]any)
	sections["agents"].(map[string]any)["agents"] = []map[string]string{
		{"name": "mayor", "role": "mayor"}, {"name": "witness", "role": "witness"}, {"name": "polecat-alpha", "role": "polecat"}}
	text, err := yaml.Marshal(sections)
	if err != nil {
		t.Fatal(err)
	}
	want := wantDefaults()
	got := mustParse(t, string(text))
	got.Topology, got.MergeDefined = want.Topology, false
	got.polecats, got.auditGiven = want.polecats, want.auditGiven
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Definition{})); diff != "" {
		t.Errorf("defaults (-program +schema):\n%s\n%s", diff, text)
	}
}

// schemaDefaults returns the defaults of a schema's properties as a document.
func schemaDefaults(s map[string]any) any {
	if value, ok := s["default"]; ok {
		return value
	}
	properties, _ := s["properties"].(map[string]any)
	document := map[string]any{}
	for key, property := range properties {
		if value := schemaDefaults(property.(map[string]any)); value != nil {
			document[key] = value
		}
	}
	if len(document) == 0 {
		return nil
	}
	return document
}

// TestEditorsAgree: an editor that checks by the schema finds nothing in a
// definition that Parse accepts, and what Parse refuses by the schema it refuses too.
func TestEditorsAgree(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(Schema()), &s); err != nil {
		t.Fatal(err)
	}
	editor, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) error {
		var document any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		return editor.Validate(document)
	}
	for _, good := range []string{
		minimal, string(readTestdata(t, "classic.yaml")), string(Template(TemplateOptions{RigName: "x"})),
		minimal + "worker: {presets: {x: {command: [a, 1, true], env: {A: , B: 1}, timeout: 1h30m}, claude: }}\n",
		minimal + "header: {version: 1.0.0-rc.1+b}\nmerge: {test: true, target: a/b, remote: origin}\nmail: {max_size: 2048, retention: 90}\n",
	} {
		mustParse(t, good)
		if err := check(good); err != nil {
			t.Errorf("%v\n%s", err, good)
		}
	}
	for _, bad := range []string{
		"{}", minimal + "dispach: {}\n", minimal + "rig: [a]\n", minimal + "header: {version: \"1.0\"}\n", minimal + "dispatch: {max_parallel: 0}\n",
		minimal + "dispatch: {strategy: slingshot}\n", minimal + "gupp: {thresholds: {stall_detection: soon}}\n",
		minimal + "worker: {presets: {../x: {command: y}}}\n", minimal + "worker: {presets: {x: {command: y, env: {CHIPSET_AGENT: x}}}}\n",
		minimal + "merge: {target: --force}\n", minimal + "merge: {target: polecat/x}\n", minimal + "audit: {ref: refs/x}\n",
		"agents: {agents: [{name: archive, role: crew}]}\n", "agents: {agents: [{name: x}]}\n",
	} {
		if def, _ := Parse("f", []byte(bad)); def != nil || check(bad) == nil {
			t.Errorf("accepted by Parse (%t) or by the schema:\n%s", def != nil, bad)
		}
	}
}

// TestTemplateNamesTheSchema: editors find the schema by the first line of the file.
func TestTemplateNamesTheSchema(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(Schema()), &s); err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(string(Template(TemplateOptions{})), "\n"); first != "# yaml-language-server: $schema="+s.ID {
		t.Errorf("first line %q, schema %q", first, s.ID)
	}
}

func TestSchemaNamesThePresets(t *testing.T) {
	clients := loadSchema().Definitions["preset"].Properties["client"].Enum
	if diff := cmp.Diff(append(builtinPresets(), "command"), clients); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(Schema(), "("+strings.Join(builtinPresets(), ", ")) {
		t.Error("worker.default does not name the presets")
	}
}
