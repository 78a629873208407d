//! One row per run with typed columns, for data frames.

use crate::runs_table::{Cells, Column, Columns};
use anabranch_run::Results;
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::sync::Arc;

/// Runs per row group: their columns are held at once.
const ROW_GROUP: usize = 1 << 14;

/// Writes the runs as a Parquet file, with the columns of `runs.csv`: words as strings, `seed` and `events` as unsigned integers,
/// `finished` as a boolean, values as doubles; null where a run has none.
///
/// # Errors
/// Those of `sink`.
pub fn write_runs_parquet(results: &Results, sink: &mut (dyn Write + Send)) -> io::Result<()> {
    write_rows(results, sink).map_err(io::Error::other)
}

fn write_rows(results: &Results, sink: &mut (dyn Write + Send)) -> Result<()> {
    let table = Columns::of(results);
    let mut file = SerializedFileWriter::new(sink, schema("runs", &table.cells(&[]))?, Arc::default())?;
    for runs in results.runs.chunks(ROW_GROUP) {
        write_group(&mut file, &table.cells(&runs))?;
    }
    file.close().map(|_| ())
}

/// Writes a table as a Parquet file with one row group.
///
/// # Errors
/// Those of `sink`.
pub fn write_columns(name: &str, columns: &[Column], sink: &mut (dyn Write + Send)) -> io::Result<()> {
    let write = || {
        let mut file = SerializedFileWriter::new(sink, schema(name, columns)?, Arc::default())?;
        write_group(&mut file, columns)?;
        file.close().map(|_| ())
    };
    write().map_err(io::Error::other)
}

type Writer<'s> = SerializedFileWriter<&'s mut (dyn Write + Send)>;

fn schema(name: &str, columns: &[Column]) -> Result<Arc<Type>> {
    let fields = columns.iter().map(|column| Ok(Arc::new(field(column)?))).collect::<Result<_>>()?;
    Ok(Arc::new(Type::group_type_builder(name).with_fields(fields).build()?))
}

fn write_group(file: &mut Writer<'_>, columns: &[Column]) -> Result<()> {
    let mut rows = file.next_row_group()?;
    for column in columns {
        if let Some(mut writer) = rows.next_column()? {
            write(&mut writer, &column.cells)?;
            writer.close()?;
        }
    }
    rows.close().map(|_| ())
}

fn field(column: &Column) -> Result<Type> {
    let (physical, converted, logical, repetition) = match column.cells {
        Cells::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8, Some(LogicalType::String), Repetition::OPTIONAL),
        Cells::Whole(_) => (Physical::INT64, ConvertedType::UINT_64, None, Repetition::REQUIRED),
        Cells::Real(_) => (Physical::DOUBLE, ConvertedType::NONE, None, Repetition::OPTIONAL),
        Cells::Truth(_) => (Physical::BOOLEAN, ConvertedType::NONE, None, Repetition::REQUIRED),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_converted_type(converted)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
}

fn write(writer: &mut SerializedColumnWriter<'_>, cells: &Cells) -> Result<()> {
    match cells {
        Cells::Text(cells) => {
            let bytes = cells.iter().map(|cell| cell.as_deref().map(ByteArray::from));
            optional::<ByteArrayType>(writer, bytes)
        }
        Cells::Real(cells) => optional::<DoubleType>(writer, cells.iter().copied()),
        Cells::Whole(cells) => {
            // As bits: the column's type says that they have no sign.
            let bits: Vec<i64> = cells.iter().map(|count| count.cast_signed()).collect();
            writer.typed::<Int64Type>().write_batch(&bits, None, None).map(|_| ())
        }
        Cells::Truth(cells) => writer.typed::<BoolType>().write_batch(cells, None, None).map(|_| ()),
    }
}

/// Values that may be absent: level 1 where there is one.
fn optional<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = Option<T::T>> + Clone,
) -> Result<()> {
    let levels: Vec<i16> = cells.clone().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<T::T> = cells.flatten().collect();
    writer.typed::<T>().write_batch(&values, Some(&levels), None).map(|_| ())
}
