//! Protobuf's wire format, as much as is needed to write.

/// A message under construction.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

const VARINT: u32 = 0;
const LENGTH_DELIMITED: u32 = 2;

impl Message {
    /// A text field; nothing for the empty text, which is the default.
    pub(super) fn text(&mut self, field: u32, text: &str) -> &mut Self {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
        self
    }

    /// A field that is a message, filled in by a function.
    pub(super) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(field, &inner.0);
        self
    }

    /// A truth value; nothing for false, which is the default.
    pub(super) fn flag(&mut self, field: u32, value: bool) -> &mut Self {
        if value {
            self.varint(u64::from(field << 3 | VARINT));
            self.varint(1);
        }
        self
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field << 3 | LENGTH_DELIMITED));
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Seven bits a byte, lowest first; the eighth says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
