"""Import rules that import-linter has no contract for."""

import grimp


def test_a_slices_sql_is_imported_by_its_slice_alone() -> None:
    graph = grimp.build_graph("holdfast", cache_dir=None)
    strangers = {
        (importer, module)
        for module in graph.modules
        if module.endswith(".sql")
        for importer in graph.find_modules_that_directly_import(module)
        if not importer.startswith(module.removesuffix("sql"))
    }

    assert strangers == set()
