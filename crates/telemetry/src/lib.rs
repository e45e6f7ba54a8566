//! Logs in klog's text format or as JSON, and traces over OTLP.
#![warn(missing_docs)]
