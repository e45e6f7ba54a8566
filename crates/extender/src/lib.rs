//! HTTP extenders: the wire types and the client.
#![warn(missing_docs)]
