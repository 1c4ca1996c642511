package cli

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lineOf returns the line of a field such as spec.phases[2].fill, spec.matrix[pool.ashift] or jobFile[line 3]. For a missing field it
// returns the line of the innermost parent that exists.
func lineOf(root *yaml.Node, path string) int {
	line, _ := find(root, path)
	return line
}

// valueAt returns the text of a field with a single value. single is false for all other fields.
func valueAt(root *yaml.Node, path string) (value string, single bool) {
	_, node := find(root, path)
	if node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node == nil || node.Kind != yaml.ScalarNode {
		return "", false
	}
	return node.Value, true
}

// find returns the node of a field, or nil if the field is missing, and the line as lineOf does.
func find(root *yaml.Node, path string) (line int, found *yaml.Node) {
	node, line := root, 1
	if node.Kind == yaml.DocumentNode && len(node.Content) > 0 {
		node = node.Content[0]
		line = node.Line
	}
	for _, step := range pathSteps(path) {
		child, at := childOf(node, step)
		if child == nil {
			return line, nil
		}
		node, line = child, at
	}
	return line, node
}

// childOf follows one step of a path. The line of a field is the line of its name.
func childOf(node *yaml.Node, step string) (child *yaml.Node, line int) {
	for node.Kind == yaml.AliasNode && node.Alias != nil {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i].Line
		}
	case yaml.ScalarNode:
		return lineOfText(node, step)
	default: // other nodes have no children
	}
	return nil, 0
}

// lineOfText follows a step such as "line 2" into a literal block, which is a text after a |.
func lineOfText(node *yaml.Node, step string) (child *yaml.Node, line int) {
	number, found := strings.CutPrefix(step, "line ")
	lines := strings.Split(strings.TrimRight(node.Value, "\n"), "\n")
	i, err := strconv.Atoi(number)
	if !found || err != nil || i < 1 || i > len(lines) || node.Style&yaml.LiteralStyle == 0 {
		return nil, 0
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: lines[i-1]}, node.Line + i
}

// pathSteps splits a path at dots and brackets. Brackets may contain dots.
func pathSteps(path string) []string {
	var steps []string
	for path != "" {
		if rest, inBrackets := strings.CutPrefix(path, "["); inBrackets {
			step, tail, _ := strings.Cut(rest, "]")
			steps, path = append(steps, step), strings.TrimPrefix(tail, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(steps, path)
		}
		steps, path = append(steps, path[:end]), strings.TrimPrefix(path[end:], ".")
	}
	return steps
}
