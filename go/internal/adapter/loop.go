package main

type loop struct{}
