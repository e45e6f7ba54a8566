//! The page that scrapers read: every family, right numbers, and dashboards and
//! alerts that use nothing else.

mod deploy;
mod families;
mod numbers;
mod scene;
