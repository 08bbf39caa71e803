package main

import (
	"strings"
	"testing"
)

func TestTheConfigurationCoversBothRegistriesAndLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	text := cliConfiguration("/mirror")
	for _, address := range []string{`"registry.terraform.io/agentsandbox/sandbox"`, `"registry.opentofu.org/agentsandbox/sandbox"`} {
		if strings.Count(text, address) != 2 {
			t.Errorf("%s must be included in the mirror and excluded from direct:\n%s", address, text)
		}
	}
}

func TestTheExplanationNamesWhatToSetAndWhatToWrite(t *testing.T) {
	t.Parallel()
	text := explanation("0.1.0", "/mirror", "/mirror/cli.tfrc")
	for _, want := range []string{"TF_CLI_CONFIG_FILE=/mirror/cli.tfrc", "~/.tofurc", `version = "0.1.0"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestTheExplanationOfThePluginNamesPathAndAddress(t *testing.T) {
	t.Parallel()
	text := pluginExplanation("0.1.0", "/mirror/packer")
	for _, want := range []string{"PACKER_PLUGIN_PATH=/mirror/packer", "packer init", `version = ">= 0.1.0"`, `"github.com/agentsandbox/sandbox"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
}
