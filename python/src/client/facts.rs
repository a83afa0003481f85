//! What is known of a collection, as dictionaries for the Python package.

use ciphervec_client::{Clustered, Explanation, Info, PrivateFetch, RoutingCost};
use ciphervec_owner::IndexSpec;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use crate::client::values::names;
use crate::spec::PyIndexSpec;

fn cost<'py>(py: Python<'py>, of: &RoutingCost) -> PyResult<Bound<'py, PyDict>> {
    let counts = [
        ("clusters", of.clusters),
        ("rows_each", of.rows_each),
        ("probes", of.probes),
        ("decoys", of.decoys),
        ("padding", of.padding),
    ];
    let out = counts.into_py_dict(py)?;
    out.set_item("recall", of.recall)?;
    Ok(out)
}

/// What one question costs and shows; `text` is all of it for people.
pub fn explained<'py>(py: Python<'py>, told: &Explanation) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("rows", told.rows)?;
    out.set_item("rows_scanned", told.rows_scanned)?;
    out.set_item("routed", told.routed)?;
    out.set_item("unrouted", told.unrouted)?;
    out.set_item("routing", told.routing.as_ref().map(|of| cost(py, of)).transpose()?)?;
    out.set_item("traffic", told.traffic.map(|of| (of.up, of.down, of.ahead)))?;
    out.set_item("tokens", told.tokens)?;
    out.set_item("leak", &told.leak)?;
    out.set_item("text", told.to_string())?;
    Ok(out)
}

/// What clustering made.
pub fn clustered<'py>(py: Python<'py>, made: &Clustered) -> PyResult<Bound<'py, PyDict>> {
    let counts = [
        ("clusters", made.clusters),
        ("rows_each", made.rows_each),
        ("probes", made.probes),
        ("decoys", made.decoys),
        ("unrouted", made.unrouted),
    ];
    let out = counts.into_py_dict(py)?;
    out.set_item("recall", made.recall)?;
    out.set_item("recalls", &made.recalls)?;
    Ok(out)
}

/// What a private fetch is like: `table` is None where there is none, and `refused` says why.
pub fn fetched(py: Python<'_>, told: PrivateFetch) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    let (table, refused) = match told.records {
        Ok(table) => {
            let of = PyDict::new(py);
            of.set_item("rows", table.rows)?;
            of.set_item("place_bytes", table.place_bytes)?;
            of.set_item("long_rows", table.long_rows)?;
            of.set_item("long_place_bytes", table.long_place_bytes)?;
            of.set_item("table_bytes", table.table_bytes)?;
            of.set_item("seconds", table.seconds)?;
            of.set_item("seconds_of_ten", table.seconds_of_ten)?;
            (Some(of), None)
        }
        Err(why) => (None, Some(why)),
    };
    out.set_item("table", table)?;
    out.set_item("refused", refused)?;
    out.set_item("failures", told.failures)?;
    out.set_item("ended", told.ended)?;
    Ok(out)
}

/// What is stored and what protects it.
pub fn described<'py>(py: Python<'py>, info: Info) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let segment = |one: &ciphervec_client::SegmentInfo| {
        (one.id.clone(), one.rows, one.deleted, one.bytes.clone(), one.writer.clone())
    };
    let segments: Vec<_> = info.segments.iter().map(segment).collect();
    let key = info.query_key.map(|key| (key.session, key.queries, key.most, key.refused));
    let packing = info.packing.map(|packing| {
        let network = (packing.network.bytes_per_second, packing.network.round_trip);
        let choice = (packing.choice.level, packing.choice.answer_len, packing.choice.transfer);
        (choice, packing.rows_by_level, network)
    });
    let routing = info.routing.map(|of| -> PyResult<_> {
        let clusters = of.clusters.as_ref().map(|of| cost(py, of)).transpose()?;
        Ok((clusters, of.unrouted, of.being_made))
    });
    let (ids, of): (Vec<_>, Vec<_>) = info.ignored.into_iter().unzip();
    let ignored: Vec<_> = names(py, ids)?.into_iter().zip(of).collect();
    out.set_item("filterable", info.filterable)?;
    out.set_item("untagged", info.untagged)?;
    out.set_item("originals", info.originals)?;
    out.set_item("embedding_function", info.embedding_function)?;
    out.set_item("routing", routing.transpose()?)?;
    out.set_item("rows", info.rows)?;
    out.set_item("deleted", info.deleted)?;
    out.set_item("stored", info.stored)?;
    out.set_item("key_id", info.key_id)?;
    out.set_item("rotates_from", info.rotates_from)?;
    out.set_item("epoch", info.epoch)?;
    out.set_item("query_key", key)?;
    out.set_item("version", info.version)?;
    out.set_item("authenticated", info.authenticated)?;
    out.set_item("state", info.state)?;
    out.set_item("begun", info.begun)?;
    let author = info.author.map(|(one, members)| (one.name, one.fingerprint, members));
    out.set_item("author", author)?;
    out.set_item("packing", packing)?;
    out.set_item("segments", segments)?;
    out.set_item("small_segments", info.small_segments)?;
    out.set_item("writers", info.writers)?;
    out.set_item("appended", info.appended)?;
    out.set_item("shadowed", info.shadowed)?;
    out.set_item("duplicates", names(py, info.duplicates)?)?;
    out.set_item("refused", info.refused)?;
    out.set_item("quarantine", info.quarantine)?;
    out.set_item("outdated", info.outdated)?;
    out.set_item("unchecked_blocks", info.unchecked_blocks)?;
    out.set_item("filter_tables", info.filter_tables)?;
    out.set_item("ignored", ignored)?;
    Ok(out)
}

/// What both sides know of an index.
pub fn spec(of: &IndexSpec) -> PyIndexSpec {
    PyIndexSpec(of.clone())
}
