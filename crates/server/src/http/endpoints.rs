//! Endpoint table: a row says who answers, what a token needs, what audit calls it. Server side.
//!
//! The handler's own `#[utoipa::path]` has method and path. The router, the OpenAPI document and
//! the authorisation tests are made from the rows: a new endpoint is a handler and a row.

use super::app::App;
use super::handlers::{
    blobs, collections, commits, fetch, program_uploads, programs, query, service, table_uploads,
    tables, tokens, upkeep, uploads, verify,
};
use crate::auth::{Access, Verb};
use axum::routing::{MethodFilter, MethodRouter, on};
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{OpenApi as Document, PathItem};

const READ: Access = Access::Collection(&[Verb::Read]);
const READ_OR_QUERY: Access = Access::Collection(&[Verb::Read, Verb::Query]);
const QUERY: Access = Access::Collection(&[Verb::Query]);
/// What of a change each of them allows, the commit itself looks at.
const CHANGE: Access = Access::Collection(&[Verb::Write, Verb::Append]);
const ADMIN: Access = Access::Collection(&[Verb::Admin]);
const RUN: Access = Access::Program(&[Verb::Run]);
const KEEP: Access = Access::Program(&[Verb::Keep]);
const RUN_OR_KEEP: Access = Access::Program(&[Verb::Run, Verb::Keep]);
const PROGRAM_ADMIN: Access = Access::Program(&[Verb::Admin]);

/// One endpoint.
pub struct Endpoint {
    /// The path, parameters in braces.
    pub path: String,
    /// What a token must allow.
    pub access: Access,
    /// What it does, for audit lines.
    pub action: &'static str,
    /// The handler.
    pub handler: MethodRouter<Arc<App>>,
    /// Its operation and the schemas that this names, nothing else.
    pub document: Document,
}

impl Endpoint {
    fn new(
        access: Access,
        action: &'static str,
        mut document: Document,
        route: impl FnOnce(MethodFilter) -> MethodRouter<Arc<App>>,
    ) -> Self {
        let described = document.paths.paths.iter_mut().next();
        let described = described.and_then(|(path, item)| {
            let (method, _) = operation(item)?;
            Some((method, path.clone()))
        });
        // The derived document of one handler has its one path; the router refuses an empty one.
        let (method, path) = described.unwrap_or((MethodFilter::GET, String::new()));
        Endpoint { path, access, action, handler: route(method), document }
    }
}

/// The one operation of a path that was described for one handler.
pub fn operation(item: &mut PathItem) -> Option<(MethodFilter, &mut Operation)> {
    let operations = [
        (MethodFilter::GET, &mut item.get),
        (MethodFilter::PUT, &mut item.put),
        (MethodFilter::POST, &mut item.post),
        (MethodFilter::PATCH, &mut item.patch),
        (MethodFilter::DELETE, &mut item.delete),
    ];
    operations.into_iter().find_map(|(method, one)| Some((method, one.as_mut()?)))
}

macro_rules! table {
    ($($($handler:ident)::+ => $access:expr, $action:literal;)*) => {
        vec![$({
            #[derive(OpenApi)]
            #[openapi(paths($($handler)::+))]
            struct One;

            Endpoint::new($access, $action, One::openapi(), |method| on(method, $($handler)::+))
        }),*]
    };
}

/// Every endpoint.
pub fn endpoints() -> Vec<Endpoint> {
    table! {
        service::health => Access::Public, "health";
        service::ready => Access::Public, "ready";
        service::metrics => Access::Metrics, "metrics";
        service::document => Access::Public, "document";
        service::about => Access::Public, "about";
        tokens::own => Access::Token, "token";
        tokens::list => Access::Operator, "tokens";
        collections::list => Access::Token, "list";
        collections::create => ADMIN, "create";
        collections::describe => READ_OR_QUERY, "describe";
        collections::remove => ADMIN, "drop";
        commits::commit => CHANGE, "commit";
        query::query => QUERY, "query";
        query::searched => QUERY, "query-state";
        query::put_query_keys => QUERY, "query-keys";
        fetch::offer => READ, "fetch-table";
        fetch::put_keys => READ, "fetch-keys";
        fetch::fetch => READ, "fetch";
        blobs::attachment => READ, "attachment";
        blobs::segment => READ, "blob";
        blobs::several => READ, "blobs";
        uploads::create => CHANGE, "upload";
        uploads::progress => CHANGE, "upload-progress";
        uploads::append => CHANGE, "upload-piece";
        uploads::remove => CHANGE, "upload-delete";
        upkeep::compact => ADMIN, "compact";
        upkeep::purge => ADMIN, "purge";
        verify::verify => ADMIN, "verify";
        upkeep::list => ADMIN, "snapshots";
        upkeep::take => ADMIN, "snapshot";
        upkeep::drop_snapshot => ADMIN, "snapshot-drop";
        upkeep::restore => ADMIN, "restore";
        tables::list => Access::Token, "tables";
        tables::put => ADMIN, "table-put";
        tables::describe => READ_OR_QUERY, "table";
        tables::remove => ADMIN, "table-remove";
        tables::put_keys => QUERY, "table-keys";
        tables::look_up => QUERY, "table-lookup";
        table_uploads::create => ADMIN, "table-upload";
        table_uploads::progress => ADMIN, "table-upload-progress";
        table_uploads::append => ADMIN, "table-upload-piece";
        table_uploads::remove => ADMIN, "table-upload-delete";
        programs::list => Access::Token, "programs";
        programs::put => PROGRAM_ADMIN, "program-put";
        programs::describe => RUN_OR_KEEP, "program";
        programs::remove => PROGRAM_ADMIN, "program-remove";
        programs::run => RUN, "program-run";
        programs::put_keys => KEEP, "program-keys";
        programs::remove_keys => KEEP, "program-keys-remove";
        programs::keep => KEEP, "program-keep";
        programs::forget => KEEP, "program-forget";
        program_uploads::create => KEEP, "program-upload";
        program_uploads::progress => KEEP, "program-upload-progress";
        program_uploads::append => KEEP, "program-upload-piece";
        program_uploads::remove => KEEP, "program-upload-delete";
    }
}
