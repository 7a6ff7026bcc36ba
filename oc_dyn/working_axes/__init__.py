"""Recursions in working axes: the engine of the composite methods, for matrices, partials and second partials.

Every joint of one axis turns about, or slides along, the z axis of its canonical frame. Three ideas make its recursion
short.

Working axes: a joint about z does not see its own rotation, as its screw is the same before and after it. The motion
of a body and what is summed over its subtree are therefore kept at the body's origin in the axes that the joint starts
from, its working axes, and rotated once, by the double-angle formulas of `rotations.PlaneRotation`. A child with a
parallel axis hangs on the working axes themselves: along a row of parallel axes nothing is rotated at all (`frames`).

Fields: velocities and accelerations of a body are fields over its points, given by (angular, linear) at its origin; a
point r has the acceleration a + U r with the acceleration matrix U (`fields`, `screws`). What a subtree does then
follows from a few integrals over its mass: mass, first moment, second moments or tensor, one matrix K of the
velocities, force and moment (`sums`). They are shifted from body to body without products of 6 x 6 matrices, and each
is a letter with one meaning in all methods.

One pass outward, one inward: `tree.WorkingTree` runs outward over the motions of the bodies, inward over the sums of
their subtrees, and from a body to the root with what its joint does to the joints above (`climb`). Entries for pairs of
bodies become matrices over the robot's velocities in `assembly`.
"""
