"""(f) A hand grasps, lifts and carries: rewards for records, as the Allegro-Kuka tasks pay them."""

from __future__ import annotations

import torch

from .base import DiagnosticEnv, choose

SPEED = 0.15
"""Distance of a step at full action, along x and along z."""
FINGER_SPEED = 0.05
"""Change of the fingers' opening in a step at full action; 1 is open, 0 closed."""
CLOSED = 0.4
"""Opening below which fingers hold what is between them."""
GRASP_RADIUS = 0.1
"""Distance from hand to object within which it is between the fingers."""
DROP = 0.05
"""How much faster an object that nobody holds falls with every step [a step]."""
WIDTH, HEIGHT = 1.0, 1.2
"""The hand moves within x in [-1, 1] and z in [0, 1.2]; the table is z = 0."""
LIFTED = 0.3
"""Height from which on an object is lifted."""
GOAL_HEIGHT = (0.5, 1.1)
TOLERANCE = 0.1
"""Distance from object to goal that is near."""
NEAR_STEPS = 3
"""Steps near a goal that make a success."""
GOAL_STEPS = 48
"""Steps without a success that end an episode."""
MOST_SUCCESSES = 4
"""Successes that end an episode."""
PAY_REACH, PAY_LIFT, PAY_CARRY, PAY_SUCCESS = 0.5, 3.0, 2.0, 10.0
"""Rewards as in Allegro-Kuka, in hundreds: for each unit of distance that the hand comes nearer to the object than ever
until it is lifted; for lifting it; for each unit that the lifted object comes nearer to the goal than ever; for a
success, spread over the steps near the goal."""


class PickPlaceEnv(DiagnosticEnv):
    """A hand in an upright plane brings an object from a table to one goal after the other.

    After a success the object lies on the table again, elsewhere. The score is the number of successes, as a share of
    the :data:`MOST_SUCCESSES` that a hand makes which loses no time.
    """

    num_actions = 3
    horizon = MOST_SUCCESSES * GOAL_STEPS

    def draw_state(self) -> dict[str, torch.Tensor]:
        """Return open hands above the table, with an object and a goal."""
        zero = torch.zeros(self.num_envs, device=self.device)
        hand = torch.stack([WIDTH * (2.0 * self.uniform(self.num_envs) - 1.0), zero + 0.6], dim=-1)
        return {
            "hand": hand,
            "opening": zero + 1.0,
            "holds": zero.bool(),
            "fall": zero,
            "successes": zero,
            **self.draw_goal(hand),
        }

    def draw_goal(self, hand: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return an object on the table, a goal in the air, and records that nothing has beaten yet."""
        x, goal_x, height = self.uniform(3, self.num_envs)
        low, high = GOAL_HEIGHT
        thing = torch.stack([WIDTH * (2.0 * x - 1.0), torch.zeros_like(x)], dim=-1)
        goal = torch.stack([WIDTH * (2.0 * goal_x - 1.0), low + (high - low) * height], dim=-1)
        zero = torch.zeros_like(x)
        return {
            "object": thing,
            "goal": goal,
            "lifted": zero.bool(),
            "nearest_hand": (hand - thing).norm(dim=-1),
            "nearest_goal": (thing - goal).norm(dim=-1),
            "near_steps": zero,
            "goal_steps": zero,
        }

    def observe(self) -> torch.Tensor:
        """Return hand, opening, object and goal from the hand, flags of contact and lift, records and counters."""
        state = self.state
        hand, thing = state["hand"], state["object"]
        numbers = [
            state["opening"],
            state["holds"].float(),
            state["lifted"].float(),
            state["nearest_hand"],
            state["nearest_goal"],
            state["near_steps"] / NEAR_STEPS,
            state["goal_steps"] / GOAL_STEPS,
            state["successes"] / MOST_SUCCESSES,
        ]
        return torch.cat([hand, thing - hand, state["goal"] - thing, torch.stack(numbers, dim=-1)], dim=-1)

    def advance(self, actions: torch.Tensor) -> torch.Tensor:
        """Move, grasp or drop, and pay for records."""
        state = self.state
        x, z = (state["hand"] + SPEED * actions[:, :2]).unbind(dim=-1)
        hand = torch.stack([x.clamp(-WIDTH, WIDTH), z.clamp(0.0, HEIGHT)], dim=-1)
        opening = (state["opening"] - FINGER_SPEED * actions[:, 2]).clamp(0.0, 1.0)

        # Contact: fingers that close around the object hold it until they open
        closes = (opening < CLOSED) & (state["opening"] >= CLOSED)
        around = (hand - state["object"]).norm(dim=-1) <= GRASP_RADIUS
        holds = (opening < CLOSED) & (state["holds"] | (closes & around))

        # The object is where the hand is, or falls onto the table
        fall = torch.where(holds, 0.0, state["fall"] + DROP)
        x, z = state["object"].unbind(dim=-1)
        dropped = torch.stack([x, (z - fall).clamp(min=0.0)], dim=-1)
        thing = torch.where(holds.unsqueeze(-1), hand, dropped)
        fall = torch.where(thing[:, 1] > 0.0, fall, 0.0)
        lifted = state["lifted"] | (thing[:, 1] > LIFTED)

        # Records: only what is nearer than ever pays
        to_object, to_goal = (hand - thing).norm(dim=-1), (thing - state["goal"]).norm(dim=-1)
        reach = (state["nearest_hand"] - to_object).clamp(min=0.0) * ~lifted
        carry = (state["nearest_goal"] - to_goal).clamp(min=0.0) * lifted
        near = lifted & (to_goal <= TOLERANCE)
        rewards = PAY_REACH * reach + PAY_LIFT * (lifted & ~state["lifted"]) + PAY_CARRY * carry
        rewards = rewards + PAY_SUCCESS / NEAR_STEPS * near

        # A success: the object goes back to the table, and there is a new goal
        near_steps = state["near_steps"] + near
        success = near_steps >= NEAR_STEPS
        moved = {
            "object": thing,
            "goal": state["goal"],
            "lifted": lifted,
            "nearest_hand": torch.minimum(state["nearest_hand"], to_object),
            "nearest_goal": torch.minimum(state["nearest_goal"], to_goal),
            "near_steps": near_steps,
            "goal_steps": state["goal_steps"] + 1.0,
        }
        self.state = {
            "hand": hand,
            "opening": opening,
            "holds": holds & ~success,
            "fall": torch.where(success, 0.0, fall),
            "successes": state["successes"] + success,
            **choose(success, self.draw_goal(hand), moved),
        }
        return rewards

    def ended(self) -> torch.Tensor:
        """Return which episodes end with this step: a goal not reached in time, or the last success."""
        over = (self.state["goal_steps"] >= GOAL_STEPS) | (self.state["successes"] >= MOST_SUCCESSES)
        return over | super().ended()

    def score(self, returns: torch.Tensor) -> torch.Tensor:
        """Return the share of the successes that can be had."""
        return self.state["successes"] / MOST_SUCCESSES
