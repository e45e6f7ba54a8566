//! Aligned columns.

use std::fmt;

/// Rows of text whose columns line up when displayed.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Columns of numbers stand to the right.
    right: Vec<usize>,
    indent: usize,
}

impl Table {
    pub(crate) fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Self {
        let mut table = Self::default();
        table.row(header);
        table
    }

    /// Aligns these columns to the right.
    pub(crate) fn right(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.right.extend(columns);
        self
    }

    /// Moves the table that many columns to the right.
    pub(crate) fn indent(mut self, by: usize) -> Self {
        self.indent = by;
        self
    }

    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(|cell| printable(&cell.into())).collect());
    }
}

/// The text with control characters escaped: what stands in an object must not
/// move the cursor or break a line.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..n_columns).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().enumerate().map(|(column, cell)| {
                let width = widths[column];
                if self.right.contains(&column) {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                }
            });
            let line = cells.collect::<Vec<_>>().join("   ");
            writeln!(f, "{:indent$}{}", "", line.trim_end(), indent = self.indent)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_have_no_trailing_blanks() {
        let mut table = Table::new(["NAME", "N"]).right([1]);
        table.row(["a", "5"]);
        table.row(["longer", "100"]);
        assert_eq!(table.to_string(), "NAME       N\na          5\nlonger   100\n");
    }

    #[test]
    fn control_characters_reach_no_terminal() {
        let mut table = Table::new(["a\u{1b}[31mred\nb"]);
        table.row(["ä"]);
        assert_eq!(table.to_string(), "a\\u{1b}[31mred\\nb\nä\n");
    }
}
