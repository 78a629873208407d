//! Tables of columns, handed over through Arrow's C interface.

use anabranch_workbench::runs_table::{Cells, Column};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{Field, Schema};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use std::sync::Arc;

/// Columns of equal length. Any library that reads Arrow (pandas, polars, duckdb, pyarrow) takes it without a copy.
#[pyclass(frozen, module = "anabranch")]
pub struct Table(RecordBatch);

impl Table {
    /// From arrays of the same length.
    pub fn new(columns: Vec<(String, ArrayRef)>) -> PyResult<Self> {
        let fields: Vec<Field> =
            columns.iter().map(|(name, of)| Field::new(name, of.data_type().clone(), true)).collect();
        let arrays = columns.into_iter().map(|(_, array)| array).collect::<Vec<_>>();
        let schema = Arc::new(Schema::new(fields));
        let rows = arrays.first().map_or(0, |array| array.len());
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options);
        batch.map(Self).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    pub fn of_columns(columns: Vec<Column>) -> PyResult<Self> {
        let array = |cells: Cells| -> ArrayRef {
            match cells {
                Cells::Text(cells) => Arc::new(StringArray::from(cells)),
                Cells::Whole(cells) => Arc::new(UInt64Array::from(cells)),
                Cells::Real(cells) => Arc::new(Float64Array::from(cells)),
                Cells::Truth(cells) => Arc::new(BooleanArray::from(cells)),
            }
        };
        Self::new(columns.into_iter().map(|column| (column.name, array(column.cells))).collect())
    }

    fn array(&self, name: &str) -> PyResult<&ArrayRef> {
        self.0.column_by_name(name).ok_or_else(|| PyKeyError::new_err(format!("the table has no column `{name}`")))
    }
}

fn list<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let any = array.as_any();
    if let Some(cells) = any.downcast_ref::<StringArray>() {
        PyList::new(py, cells.iter().collect::<Vec<_>>())
    } else if let Some(cells) = any.downcast_ref::<Float64Array>() {
        PyList::new(py, cells.iter().collect::<Vec<_>>())
    } else if let Some(cells) = any.downcast_ref::<UInt64Array>() {
        PyList::new(py, cells.iter().collect::<Vec<_>>())
    } else if let Some(cells) = any.downcast_ref::<Int64Array>() {
        PyList::new(py, cells.iter().collect::<Vec<_>>())
    } else if let Some(cells) = any.downcast_ref::<BooleanArray>() {
        PyList::new(py, cells.iter().collect::<Vec<_>>())
    } else {
        Err(PyValueError::new_err(format!("a column of {}", array.data_type())))
    }
}

#[pymethods]
impl Table {
    /// From (name, type, cells); a type is `text`, `whole`, `real` or `truth`, and `None` a missing cell.
    #[staticmethod]
    fn from_columns(columns: Vec<(String, String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let array = |kind: &str, cells: &Bound<'_, PyAny>| -> PyResult<ArrayRef> {
            Ok(match kind {
                "text" => Arc::new(StringArray::from(cells.extract::<Vec<Option<String>>>()?)),
                "whole" => Arc::new(Int64Array::from(cells.extract::<Vec<Option<i64>>>()?)),
                "real" => Arc::new(Float64Array::from(cells.extract::<Vec<Option<f64>>>()?)),
                "truth" => Arc::new(BooleanArray::from(cells.extract::<Vec<Option<bool>>>()?)),
                other => return Err(PyValueError::new_err(format!("`{other}` is no type of a column"))),
            })
        };
        let arrays: PyResult<_> =
            columns.into_iter().map(|(name, kind, cells)| Ok((name, array(&kind, &cells)?))).collect();
        Self::new(arrays?)
    }

    /// The columns' names, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The type of a column, as Arrow calls it.
    fn column_type(&self, name: &str) -> PyResult<String> {
        Ok(self.array(name)?.data_type().to_string())
    }

    /// The first rows.
    fn head(&self, rows: usize) -> Self {
        Self(self.0.slice(0, rows.min(self.0.num_rows())))
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// A column as a list; missing cells are `None`.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        list(py, self.array(name)?)
    }

    /// The columns as lists, by name.
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (field, array) in self.0.schema_ref().fields().iter().zip(self.0.columns()) {
            columns.set_item(field.name(), list(py, array)?)?;
        }
        Ok(columns)
    }

    /// The schema, through Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema_ref().as_ref());
        let schema = schema.map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows, through Arrow's PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore the wish.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
