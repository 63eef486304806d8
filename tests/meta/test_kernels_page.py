# SPDX-License-Identifier: MIT
"""docs/kernels.md lists every test that other kernels leave out, with its reason."""

from __future__ import annotations

from tests.kernels import page


def test_the_page_lists_what_is_left_out() -> None:
    table = page.left_out_table()
    assert f"<!-- begin left out -->\n{table}\n<!-- end left out -->" in page.PAGE.read_text()


def test_each_of_them_says_why() -> None:
    assert all(len(reason) > 20 for *_, reason in page.own_kernel())
