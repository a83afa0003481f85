//! Members of one collection, for the Python package.

use std::sync::Arc;

use ciphervec_client::{MemberChange, MemberInfo};
use ciphervec_owner::members::Role;
use pyo3::prelude::*;

use crate::client::collection::PyCollection;
use crate::client::host::PyCallHost;
use crate::errors::Raise;
use crate::sharing::PyIdentity;

/// Name, fingerprint, role.
type Member = (String, String, &'static str);
/// What was done, to whom, the role given, by whom, seconds since 1970.
type Changed = (&'static str, Option<String>, Option<&'static str>, String, u64);

fn member(one: MemberInfo) -> Member {
    (one.name, one.fingerprint, one.role.as_str())
}

fn role(name: &str) -> PyResult<Role> {
    Role::parse(name).map_err(Raise::raise)
}

/// The list of one collection.
#[pyclass(name = "Members", module = "ciphervec._native", frozen)]
pub struct PyMembers(Py<PyCollection>);

#[pymethods]
impl PyMembers {
    #[new]
    fn new(collection: Py<PyCollection>) -> Self {
        Self(collection)
    }

    fn members(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<Vec<Member>> {
        let found = self.0.get().run(py, host, async |one, host| one.members(host).await)?;
        Ok(found.into_iter().map(member).collect())
    }

    fn changes(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<Vec<Changed>> {
        let found = self.0.get().run(py, host, async |one, host| one.member_changes(host).await)?;
        let told = |MemberChange { what, who, role, by, time }| {
            (what, who, role.map(Role::as_str), by, time)
        };
        Ok(found.into_iter().map(told).collect())
    }

    fn found(&self, py: Python<'_>, host: &PyCallHost, by: &PyIdentity) -> PyResult<()> {
        let by = Arc::clone(&by.0);
        self.0.get().run(py, host, async |one, host| one.found_members(host, &by).await)
    }

    /// Of a card's bytes.
    fn add(&self, py: Python<'_>, host: &PyCallHost, card: &[u8], role: &str) -> PyResult<Member> {
        let role = self::role(role)?;
        self.0
            .get()
            .run(py, host, async |one, host| one.add_member(host, card, role).await)
            .map(member)
    }

    /// By name or fingerprint.
    fn appoint(
        &self,
        py: Python<'_>,
        host: &PyCallHost,
        who: &str,
        role: &str,
    ) -> PyResult<Member> {
        let role = self::role(role)?;
        self.0
            .get()
            .run(py, host, async |one, host| one.appoint_member(host, who, role).await)
            .map(member)
    }

    fn remove(&self, py: Python<'_>, host: &PyCallHost, who: &str) -> PyResult<()> {
        self.0.get().run(py, host, async |one, host| one.remove_member(host, who).await)
    }

    fn reseal(&self, py: Python<'_>, host: &PyCallHost) -> PyResult<()> {
        self.0.get().run(py, host, async |one, host| one.reseal(host).await)
    }
}
