// SPDX-License-Identifier: MIT

//go:build kubernetes_1_30

package main

import (
	"github.com/spf13/cobra"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// Up to 1.30 the command made its own context.
func kubeletCommand() *cobra.Command { return kubelet.NewKubeletCommand() }
