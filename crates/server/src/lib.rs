//! Requests enter, sealed answers leave: an HTTP server for collections that it cannot read.
#![forbid(unsafe_code)]
