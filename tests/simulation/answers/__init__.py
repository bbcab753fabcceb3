"""Recorded answers of MongoDB servers, and a program that records, checks and replays them."""
