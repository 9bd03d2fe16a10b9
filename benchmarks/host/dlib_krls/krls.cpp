// dlib's kernel recursive least squares, for benchmarks/update_cost.py: the stream is learned, sample after sample.
#include <dlib/svm/kernel.h>
#include <dlib/svm/krls.h>
using sample = dlib::matrix<REAL, DIM, 1>;
using model = dlib::krls<dlib::radial_basis_kernel<sample>>;
extern "C" void *begin(double gamma, double tolerance, long n) { return new model(REAL(gamma), REAL(tolerance), n); }
extern "C" void learn(void *m, const REAL *x, const REAL *y, long count)
{
    for (long t = 0; t < count; t++) static_cast<model *>(m)->train(dlib::mat(x + t * DIM, DIM, 1), y[t]);
}
extern "C" long size(void *m) { return static_cast<model *>(m)->dictionary_size(); }
