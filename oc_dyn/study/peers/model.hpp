// A robot read from a text: pinocchio::Model, and where our coordinates are among its own.
#pragma once

#include <pinocchio/multibody.hpp>

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Robot {
  pinocchio::Model model;
  std::vector<int> q_place, v_place;  // of our i-th coordinate among theirs

  std::vector<double> our_q(const Eigen::VectorXd& theirs) const { return picked(theirs, q_place); }
  std::vector<double> our_v(const Eigen::VectorXd& theirs) const { return picked(theirs, v_place); }

private:
  static std::vector<double> picked(const Eigen::VectorXd& theirs, const std::vector<int>& place) {
    std::vector<double> out;
    for (int k : place) out.push_back(theirs[k]);
    return out;
  }
};

template <class X> X read(std::ifstream& file, const std::string& path) {
  X x;
  if (!(file >> x)) throw std::runtime_error(path + " ends early, or holds something else than expected");
  return x;
}

template <int rows, int columns> Eigen::Matrix<double, rows, columns> read_matrix(std::ifstream& file,
                                                                                const std::string& path) {
  Eigen::Matrix<double, rows, columns> M;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) M(i, j) = read<double>(file, path);
  return M;
}

// Lines "name kind parent rotation(9) translation(3) mass com(3) inertia(9) lower upper axis(3)", by rows; the inertia
// is about the centre of mass, the limits are of angles.
inline Robot read_robot(const std::string& path) {
  using namespace pinocchio;
  std::ifstream file(path);
  Robot robot;
  Model& m = robot.model;
  const int joints = read<int>(file, path);
  for (int k = 0; k < joints; ++k) {
    const auto name = read<std::string>(file, path), kind = read<std::string>(file, path);
    const auto parent = read<int>(file, path);
    const Eigen::Matrix3d R = read_matrix<3, 3>(file, path);
    const SE3 placement(R, read_matrix<3, 1>(file, path));
    const auto mass = read<double>(file, path);
    const Eigen::Vector3d com = read_matrix<3, 1>(file, path);
    const Inertia inertia(mass, com, read_matrix<3, 3>(file, path));
    const Eigen::VectorXd lower = read_matrix<1, 1>(file, path), upper = read_matrix<1, 1>(file, path);
    const Eigen::Vector3d axis = read_matrix<3, 1>(file, path);
    const Eigen::VectorXd most = Eigen::VectorXd::Constant(1, 1e3);
    const auto add = [&](const auto& joint) {
      return m.addJoint(parent, joint, placement, name, most, most, lower, upper);
    };
    JointIndex id;
    if (kind == "JointModelFreeFlyer") {
      id = m.addJoint(parent, JointModelFreeFlyer(), placement, name);
      m.lowerPositionLimit.segment<7>(m.joints[id].idx_q()).setConstant(-1);  // the quaternion is made uniform
      m.upperPositionLimit.segment<7>(m.joints[id].idx_q()).setConstant(1);
    } else if (kind == "JointModelRX") id = add(JointModelRX());
    else if (kind == "JointModelRY") id = add(JointModelRY());
    else if (kind == "JointModelRZ") id = add(JointModelRZ());
    else if (kind == "JointModelPX") id = add(JointModelPX());
    else if (kind == "JointModelPY") id = add(JointModelPY());
    else if (kind == "JointModelPZ") id = add(JointModelPZ());
    else if (kind == "JointModelRevoluteUnaligned") id = add(JointModelRevoluteUnaligned(axis));
    else if (kind == "JointModelPrismaticUnaligned") id = add(JointModelPrismaticUnaligned(axis));
    else throw std::runtime_error(path + ": joint " + name + " is a " + kind + ", which is not read here");
    m.appendBodyToJoint(id, inertia, SE3::Identity());
  }
  for (int k = 0; k < m.nq; ++k) robot.q_place.push_back(read<int>(file, path));
  for (int k = 0; k < m.nv; ++k) robot.v_place.push_back(read<int>(file, path));
  return robot;
}
