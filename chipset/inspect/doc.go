// Package inspect looks at a rig without taking part in it: the status at a
// glance, the whole story of one bead, the health of the agents, and the doctor
// that checks every rule of the state tree. Only the doctor writes, and only
// when it is asked to.
//
// A rig that runs changes while it is looked at. Status and Why show what they
// found; the doctor looks again before it calls a relation broken.
package inspect
