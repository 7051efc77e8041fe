//! Messages in the encoding of protocol buffers: as much of it as a profile needs.

/// A message that is being written. Fields have a number and a value. A 0 is left out, which means
/// the same.
#[derive(Debug, Default)]
pub(crate) struct Message(Vec<u8>);

/// The kinds of fields, as they stand in a field's key.
const NUMBER: u64 = 0;
const BYTES: u64 = 2;

impl Message {
    /// Returns the message as bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Adds a number.
    pub(crate) fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3 | NUMBER);
            self.varint(value);
        }
    }

    /// Adds several numbers, as one field.
    pub(crate) fn numbers(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut packed = Self::default();
        for value in values {
            packed.varint(value);
        }
        self.message(field, &packed);
    }

    /// Adds a text. It is written even if it is empty: in a list of texts the place counts.
    pub(crate) fn text(&mut self, field: u64, text: &str) {
        self.run(field, text.as_bytes());
    }

    /// Adds a message.
    pub(crate) fn message(&mut self, field: u64, message: &Self) {
        self.run(field, &message.0);
    }

    fn run(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_as_the_format_says() {
        let mut message = Message::default();
        message.number(1, 150);
        message.number(2, 0);
        message.text(2, "testing");
        // The examples of the format's own description.
        assert_eq!(message.bytes(), b"\x08\x96\x01\x12\x07testing");
        let mut message = Message::default();
        message.numbers(6, [3, 270, 86942]);
        assert_eq!(message.bytes(), b"\x32\x06\x03\x8e\x02\x9e\xa7\x05");
    }
}
