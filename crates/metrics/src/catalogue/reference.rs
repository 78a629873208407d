//! A metric as results name it: of the connection, of an application, or of a path.

use super::MetricInfo;
use core::fmt;

/// `goodput_bps`, or `path.wlan.share`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MetricRef<'a> {
    /// The path's name; `None` for a metric of the connection.
    pub path: Option<&'a str>,
    /// The metric's name.
    pub name: &'a str,
}

impl<'a> MetricRef<'a> {
    /// A metric of a path.
    pub const fn of_path(path: &'a str, name: &'a str) -> Self {
        Self { path: Some(path), name }
    }

    /// The name in results of an application's metric: `traffic.call.late_ratio`.
    pub fn of_application(application: &str, name: &str) -> String {
        format!("traffic.{application}.{name}")
    }

    /// The application and the metric, if it is a metric of an application.
    pub fn application(&self) -> Option<(&'a str, &'a str)> {
        self.name.strip_prefix("traffic.")?.split_once('.').filter(|_| self.path.is_none())
    }

    /// As results write it; a path's name may have dots.
    pub fn parse(text: &'a str) -> Self {
        let of_path = text.strip_prefix("path.").and_then(|rest| rest.rsplit_once('.'));
        of_path.map_or(Self { path: None, name: text }, |(path, name)| Self::of_path(path, name))
    }

    /// Entry of the metric in the table; `None` for a name that is no metric's.
    pub fn info(&self) -> Option<&'static MetricInfo> {
        match (self.path, self.application()) {
            (Some(_), _) => MetricInfo::of_path(self.name),
            (None, Some((_, name))) => MetricInfo::of_run(name),
            (None, None) => MetricInfo::of_run(self.name),
        }
    }
}

impl fmt::Display for MetricRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path {
            Some(path) => write!(f, "path.{path}.{}", self.name),
            None => f.write_str(self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_have_dots_in_its_name() {
        for (text, path, name) in [
            ("goodput_bps", None, "goodput_bps"),
            ("path.a.b.share", Some("a.b"), "share"),
            ("path.share", None, "path.share"),
        ] {
            let parsed = MetricRef::parse(text);
            assert_eq!((parsed.path, parsed.name, parsed.to_string().as_str()), (path, name, text));
        }
    }

    #[test]
    fn a_name_means_another_metric_on_a_path() {
        let label = |text| MetricRef::parse(text).info().map(|info| (info.label, info.per_path));
        assert_eq!(label("retransmitted_packets"), Some(("retransmitted", false)));
        assert_eq!(label("path.wlan.retransmitted_packets"), Some(("retransmitted", true)));
        assert_eq!((label("share"), label("path.wlan.goodput_bps")), (None, None));
    }
}
