// SPDX-License-Identifier: MIT

//go:build !kubernetes_1_30

package main

import (
	"context"

	"github.com/spf13/cobra"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func kubeletCommand() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }
