// SPDX-License-Identifier: MIT

// Command pacto-node is every Kubernetes program that the test cluster runs, in one binary.
//
// The first argument names the program. One binary instead of six: the programs share most of
// their packages, so one link step replaces six and the cached file stays small.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics, as upstream links them
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// command builds the root command of the named program; nil for a name that is none of them.
func command(name string) *cobra.Command {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		return controllermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	case "kubelet":
		return kubeletCommand()
	case "kube-proxy":
		return proxy.NewProxyCommand()
	case "kubectl":
		return kubectl.NewDefaultKubectlCommand()
	}
	return nil
}

func main() {
	names := []string{"kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet"}
	if len(os.Args) < 2 {
		fail(names)
	}
	os.Args = os.Args[1:] // the programs read os.Args themselves
	root := command(os.Args[0])
	if root == nil {
		fail(names)
	}
	os.Exit(cli.Run(root))
}

func fail(names []string) {
	fmt.Fprintln(os.Stderr, "usage: pacto-node "+strings.Join(names, "|")+" [flags]")
	os.Exit(2)
}
