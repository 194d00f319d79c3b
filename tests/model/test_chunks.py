import numpy as np
import pytest

from censored_gp.model.compilation import coarse, shapes


@pytest.mark.parametrize("size", [1, 16, 17, 1000])
def test_numbers_of_cells_are_rounded_up_to_few(size):
    assert coarse(size) >= size
    assert np.log2(coarse(size)) % 1 == 0


def test_all_small_numbers_of_cells_share_four_shapes():
    assert {coarse(size) for size in range(1, 1025)} == {16, 64, 256, 1024}


@pytest.mark.parametrize("most", [1, 20, 512, 2048, 65536])
def test_all_cells_are_asked_about_once_and_few_only_pad_a_shape(most):
    for total in (1, 15, 16, 17, 100, 440, 1023, 1025, 3000):
        size, chunks = shapes(total, most)
        covered = np.concatenate([np.arange(total)[cells] for cells in chunks])
        np.testing.assert_array_equal(covered, np.arange(total))
        assert all(0 < cells.stop - cells.start <= size for cells in chunks)
        assert size == 16 or size <= min(total, most)
        assert len(chunks) * size < 2 * total or total < 16
