//! The metadata that GDAL writes into a TIFF file: `<Item name="SCALE" sample="0" role="scale">0.1</Item>`.

use crate::reader::{brief, quoted};

/// The metadata of the first band that say what its values are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GdalMetadata {
    pub(super) scale: Option<f64>,
    pub(super) offset: Option<f64>,
    pub(super) unit: Option<String>,
    pub(super) doubts: Vec<String>,
}

impl GdalMetadata {
    /// Reads the items of the text. Those of other bands, and what is no item, have no effect.
    pub(super) fn read(text: &str) -> Self {
        let mut found = Self::default();
        for (item, value) in items(text) {
            if attribute(item, "sample").is_some_and(|sample| sample != "0") {
                continue;
            }
            match attribute(item, "role").unwrap_or_default() {
                "scale" => found.scale = Some(value.parse().unwrap_or(f64::NAN)),
                "offset" => found.offset = Some(value.parse().unwrap_or(f64::NAN)),
                "unittype" => found.set_unit(value),
                _ => found.take_named(attribute(item, "name").unwrap_or_default(), value),
            }
        }
        found
    }

    /// Takes an item without a role, which programs other than GDAL give a meaning to.
    fn take_named(&mut self, name: &str, value: &str) {
        let lower = name.to_ascii_lowercase();
        let usual = match lower.as_str() {
            "unit" | "units" | "unittype" => return self.set_unit(value),
            "scale" | "scale_factor" => 1.0,
            "offset" | "add_offset" => 0.0,
            _ => return,
        };
        if value.parse() != Ok(usual) {
            let value = value.parse().map_or_else(|_| quoted(value), brief);
            let name = quoted(name);
            self.doubts.push(format!("has the metadata {name} {value}, which are not applied"));
        }
    }

    fn set_unit(&mut self, unit: &str) {
        let unit = unit.replace("&apos;", "'").replace("&quot;", "\"").replace("&amp;", "&");
        if !unit.is_empty() {
            self.unit.get_or_insert(unit);
        }
    }
}

fn items(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("<Item").skip(1).filter_map(|rest| {
        let (attributes, rest) = rest.split_once('>')?;
        let (value, _) = rest.split_once("</Item>")?;
        Some((attributes, value.trim()))
    })
}

fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = attributes.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_the_first_band_count() {
        let text = concat!(
            "<GDALMetadata>\n",
            "  <Item name=\"SCALE\" sample=\"1\" role=\"scale\">7</Item>\n",
            "  <Item name=\"SCALE\" sample=\"0\" role=\"scale\">0.100000000000000006</Item>\n",
            "  <Item name=\"OFFSET\" sample=\"0\" role=\"offset\">-12.5</Item>\n",
            "  <Item name=\"UNITTYPE\" sample=\"0\" role=\"unittype\">ft</Item>\n",
            "  <Item name=\"DESCRIPTION\" sample=\"0\" role=\"description\">heights</Item>\n",
            "</GDALMetadata>\n",
        );
        let expected = GdalMetadata {
            scale: Some(0.1),
            offset: Some(-12.5),
            unit: Some("ft".to_owned()),
            doubts: Vec::new(),
        };
        assert_eq!(GdalMetadata::read(text), expected);
        for text in ["", "<Item", "<Item role=\"scale\">7", "<Item role=\"scale>7</Item>", "7"] {
            assert_eq!(GdalMetadata::read(text), GdalMetadata::default(), "{text}");
        }
    }

    #[test]
    fn an_item_without_a_role_is_told_and_not_applied() {
        let found = GdalMetadata::read("<Item name=\"scale_factor\">0.01</Item>");
        assert_eq!((found.scale, found.doubts.len()), (None, 1));
        let plain = "<Item name=\"scale_factor\">1.0</Item><Item name=\"add_offset\">0</Item>";
        assert_eq!(GdalMetadata::read(plain), GdalMetadata::default());
    }
}
