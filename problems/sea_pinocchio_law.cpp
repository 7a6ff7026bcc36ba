// Feedback linearisation of an elastic arm on Pinocchio, time derivatives by finite differences: what
// sea_codegen_controller.py compares with by --set "pinocchio='PROGRAM'". All joints turn about their z axes.
// To compile, with P the folder of the Pinocchio wheel that holds include and lib, E that of Eigen's headers (some minutes):
//   g++ -std=c++17 -O2 -DNDEBUG -w -DBOOST_MPL_LIMIT_LIST_SIZE=40 -DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS
//       -DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION -I$P/include -I$E sea_pinocchio_law.cpp -o sea_pinocchio_law
//       -L$P/lib -lpinocchio_default -Wl,-rpath,$P/lib
//
// Reads n; for each joint the rotation (9, row by row) and position (3) of its frame in the one before, mass, centre of mass (3),
// tensor about it (9); gravity (3); stiffness, motor inertia (n each); gains k0..k3; the step of the differences; the
// number of calls to time; how many inputs follow, and these: q, v, dv, d2v, d3v wanted, q, v, theta, dtheta measured.
// Writes the torques of each, and the seconds of one call on average.
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include <cstdio>
#include <ctime>
#include <iostream>
#include <vector>

using Vector = Eigen::VectorXd;

static Vector read(int n) {
    Vector x(n);
    for (int i = 0; i < n; ++i) std::cin >> x[i];
    return x;
}

static Eigen::Matrix3d read_matrix() {
    Vector x = read(9);
    return Eigen::Map<Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(x.data());
}

struct Law {
    pinocchio::Model model;
    pinocchio::Data data;
    Vector K, B, k;
    double h;
    Vector a, jerk, d3v, tau, rate, q, v, dv, torque, second; // no allocation in a call

    void step(const double *in) {
        const int n = model.nv;
        auto part = [&](int i) { return Eigen::Map<const Vector>(in + i * n, n); };
        auto q0 = part(5), v0 = part(6);
        tau = K.cwiseProduct(part(7) - q0);
        rate = K.cwiseProduct(part(8) - v0);
        a = pinocchio::aba(model, data, q0, v0, tau);
        q = q0 + h * v0 + 0.5 * h * h * a;
        v = v0 + h * a;
        dv = tau + h * rate;
        jerk = pinocchio::aba(model, data, q, v, dv);
        q = q0 - h * v0 + 0.5 * h * h * a;
        v = v0 - h * a;
        dv = tau - h * rate;
        jerk -= pinocchio::aba(model, data, q, v, dv);
        jerk /= 2 * h;
        d3v = part(4) + k[3] * (part(3) - jerk) + k[2] * (part(2) - a) + k[1] * (part(1) - v0) + k[0] * (part(0) - q0);
        second.setZero();
        for (int side = -1; side <= 1; ++side) {
            const double t = side * h;
            q = q0 + t * v0 + t * t / 2 * a + t * t * t / 6 * jerk + t * t * t * t / 24 * d3v;
            v = v0 + t * a + t * t / 2 * jerk + t * t * t / 6 * d3v;
            dv = a + t * jerk + t * t / 2 * d3v;
            second += (side ? 1.0 : -2.0) * pinocchio::rnea(model, data, q, v, dv);
        }
        second /= h * h;
        torque = B.cwiseProduct(a + second.cwiseQuotient(K)) + tau;
    }
};

int main() {
    int n;
    std::cin >> n;
    pinocchio::Model model;
    for (int i = 0; i < n; ++i) {
        Eigen::Matrix3d R = read_matrix();
        Vector p = read(3);
        auto joint = model.addJoint(i, pinocchio::JointModelRZ(), pinocchio::SE3(R, p), "joint" + std::to_string(i + 1));
        const double mass = read(1)[0];
        Vector com = read(3);
        model.appendBodyToJoint(joint, pinocchio::Inertia(mass, com, read_matrix()), pinocchio::SE3::Identity());
    }
    model.gravity.linear() = read(3);
    Vector K = read(n), B = read(n), k = read(4);
    const double h = read(1)[0];
    Law law{model, pinocchio::Data(model), K, B, k, h, {}, {}, {}, {}, {}, {}, {}, {}, {}, Vector::Zero(n)};
    const long calls = static_cast<long>(read(1)[0]);
    const int count = static_cast<int>(read(1)[0]);
    std::vector<Vector> rows;
    for (int i = 0; i < count; ++i) rows.push_back(read(9 * n));
    for (auto &row : rows) {
        law.step(row.data());
        for (int i = 0; i < n; ++i) std::printf(i ? ",%.17g" : "%.17g", law.torque[i]);
        std::printf("\n");
    }
    double sum = 0.0;
    const std::clock_t before = std::clock();
    for (long i = 0; i < calls; ++i) {
        rows[0][i % (9 * n)] += 1e-12;
        law.step(rows[0].data());
        sum += law.torque[0];
    }
    const double seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    std::printf("%.9g,%.17g\n", seconds / static_cast<double>(calls), sum);
    return 0;
}
